from dlctl.backoff import Backoff
from dlctl.workqueue.item_backoff import ItemBackoff

BACKOFF = Backoff(base_s=1, cap_s=10)


def test_delay_doubles_with_each_failure_up_to_the_cap() -> None:
    backoff = ItemBackoff[str](BACKOFF)

    assert [backoff.next_delay_s("a") for _ in range(6)] == [1, 2, 4, 8, 10, 10]


def test_default_delays_start_at_5_ms_and_reach_1000_s_with_the_19th_failure() -> None:
    backoff = ItemBackoff[str]()

    delays = [backoff.next_delay_s("a") for _ in range(19)]

    assert delays[:3] == [0.005, 0.01, 0.02]
    assert delays[17] < 1000
    assert delays[18] == 1000


def test_thousands_of_failures_do_not_overflow() -> None:
    backoff = ItemBackoff[str]()
    for _ in range(5000):
        backoff.next_delay_s("a")

    assert backoff.next_delay_s("a") == 1000
    assert backoff.failures("a") == 5001


def test_failures_of_one_key_do_not_slow_another() -> None:
    backoff = ItemBackoff[str](BACKOFF)
    backoff.next_delay_s("a")
    backoff.next_delay_s("a")

    assert backoff.next_delay_s("b") == 1
    assert (backoff.failures("a"), backoff.failures("b")) == (2, 1)


def test_forgotten_key_starts_over() -> None:
    backoff = ItemBackoff[str](BACKOFF)
    backoff.next_delay_s("a")
    backoff.next_delay_s("a")

    backoff.forget("a")
    backoff.forget("never failed")

    assert backoff.failures("a") == 0
    assert backoff.next_delay_s("a") == 1

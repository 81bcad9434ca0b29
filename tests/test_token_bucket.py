"""How much may happen at once, and how fast after that."""

from dlctl.token_bucket import TokenBucket


def test_full_bucket_grants_the_burst_and_then_one_token_per_interval() -> None:
    bucket = TokenBucket(interval_s=2, burst=3)
    assert [bucket.reserve(100) for _ in range(5)] == [0, 0, 0, 2, 4]
    assert bucket.reserve(104) == 2


def test_pause_fills_the_bucket_up_to_the_burst() -> None:
    bucket = TokenBucket(interval_s=2, burst=3)
    bucket.reserve(100, tokens=3)
    assert [bucket.reserve(1000) for _ in range(4)] == [0, 0, 0, 2]


def test_returned_token_is_available_again() -> None:
    bucket = TokenBucket(interval_s=2, burst=1)
    bucket.reserve(100)
    bucket.reserve(100)
    bucket.cancel()
    assert bucket.reserve(100) == 2


def test_part_of_a_token_is_not_taken() -> None:
    bucket = TokenBucket(interval_s=2, burst=1)
    assert bucket.try_take(100)
    assert not bucket.try_take(101)
    assert bucket.try_take(102)


def test_burst_is_exact_at_any_time() -> None:
    bucket = TokenBucket(interval_s=300, burst=25)
    taken = [bucket.try_take(1_234_567.123) for _ in range(26)]
    assert taken == [True] * 25 + [False]

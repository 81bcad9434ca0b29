"""How et-operator's group spells jobs whose workers come and go, and the requests that say so."""

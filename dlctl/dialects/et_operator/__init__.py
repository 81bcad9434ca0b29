"""et-operator's API group: elastic jobs, and the ScaleIn and ScaleOut requests for them."""

"""The processes of a node: the agent, the first process of each container, and the node's side."""

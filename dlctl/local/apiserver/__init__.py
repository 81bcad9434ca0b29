"""An in-memory API server with the guarantees of kube-apiserver that clients rely on.

A request enters by ``handler``, passes ``auth``, and is served by ``endpoints``, which decode and
validate it and read or write ``storage``; ``discovery`` serves what is not a resource. ``builtins``
and ``crds`` register the resources, and ``server`` puts everything together.
"""

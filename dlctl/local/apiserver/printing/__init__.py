"""Objects as ``kubectl get`` prints them: columns, cells and Tables."""

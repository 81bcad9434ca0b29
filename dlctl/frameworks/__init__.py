"""What a training framework needs of its replicas: plain data and pure functions."""

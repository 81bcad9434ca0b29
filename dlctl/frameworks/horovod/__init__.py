"""et-operator's TrainingJob: a launcher, and workers that come and go while it runs."""

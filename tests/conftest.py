"""What all tests share."""

from hypothesis import HealthCheck, settings

# No deadline: the machine may be busy, and a time never decides a test. For the sanitizers and second Pythons: quick.
settings.register_profile("usual", settings(), deadline=None)
settings.register_profile("quick", settings(), deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
settings.register_profile("thorough", settings(), deadline=None, max_examples=2000)
settings.load_profile("usual")

"""Will hold the access to the API server: configuration, authentication, lists and watches."""

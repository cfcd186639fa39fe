// Package windowsregistry keeps the temporary registry values through which Docker on Windows is given the credential specs of
// containers. In go a container's credential spec and the call that creates the container, the removal of containers, and the
// list of those that exist; out come security options for Docker, and values that are there exactly as long as their
// containers. Docker reads a value whenever the container starts, not when it is created: so a value is removed with its
// container, and no earlier. The package never removes a value that is not named as one of its own, never repeats a credential
// spec in an error, and never calls Docker.
package windowsregistry

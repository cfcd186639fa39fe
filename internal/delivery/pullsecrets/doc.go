// Package pullsecrets keeps the passwords of registries fresh in Secrets that images are pulled with: those of type
// kubernetes.io/dockerconfigjson that the agent keeps filled with tokens of an identity, and that list registries. In go such Secrets and the
// registries of the configuration, out comes .dockerconfigjson. It requests no token and creates no Secret, sends a token to no host that the
// configuration does not name, and writes nothing else of a Secret but two annotations of its own.
package pullsecrets

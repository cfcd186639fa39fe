// Package guard is a proxy of the Container Runtime Interface between a kubelet and its runtime. In go the kubelet's calls; out come the same calls, and
// of pods that do not come from the API, those that create are tightened to a template or refused. Containers of pods that come from the API are created
// unchanged, where reviews are wanted only with a verdict of the API, which is kept in a file. It decides by the call, by two
// files of the node and by what the runtime knows of an image, a sandbox or a container. It changes no call that stops or reads, except that it adds
// itself to the runtime's version.
package guard

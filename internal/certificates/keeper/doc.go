// Package keeper keeps the certificates of a cluster: it looks at Secrets, APIServices and webhook configurations, has package certificates
// decide, and makes and writes what is missing while it leads. In go clients, the time and randomness, out come Secrets, values of
// caBundle, Events and metrics. It changes nothing else of an object, and deletes none.
package keeper

// Package credentialspecs has the GMSACredentialSpecs of a cluster: it lists and watches them, and reads single ones. Out
// come their contents as pods get them, and nothing else is kept of them. It writes nothing, and decides nothing.
package credentialspecs

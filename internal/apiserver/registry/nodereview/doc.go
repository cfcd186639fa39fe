// Package nodereview is the resource nodereviews. In goes a review of a pod by the guard of its node; out comes whether containers of the pod may be
// created, or an error of the API where that can't be known or is not the node's to know. It reads what decides live, and stores nothing.
package nodereview

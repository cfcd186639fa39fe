// Package storage wires the commands of credence-server on what the API server stores: flags become two storages, one of which is copied to
// the other. It decides nothing about objects.
package storage

// Package install tries the Helm chart with the real Helm: what it installs beside what "credence up" applies, on a real API server, with
// values that can't work, and what is left when it is uninstalled.
package install

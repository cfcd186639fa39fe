// Package login holds tests of logins with real parts: stock kubectl and client-go, an API server, a certified OpenID provider
// (oidc-provider, on Node.js) and a person with a real browser (Chromium). programs.sh installs the last two. In go the programs of make
// build; nothing comes out but test failures. It runs the documents that need a browser, too. It never leaves a process behind, and
// never counts by the clock: the provider reports the number of its requests.
package login

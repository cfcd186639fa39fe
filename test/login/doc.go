// Package login holds tests of logins with real parts: a certified OpenID provider (oidc-provider, on Node.js) and a real browser
// (Chromium). programs.sh installs both; nothing comes out but test failures.
package login

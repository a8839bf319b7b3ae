// Package browser tests arizuko as its users see it. Each test starts the launcher with the real
// programs on an empty folder, opens the login link that it prints in a real Chromium, and also calls
// the HTTP API. At the end it stops the launcher: no process may be left, and the rows must be right.
package browser

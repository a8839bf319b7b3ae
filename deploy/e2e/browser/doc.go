// Package browser tests arizuko from where people sit. Its tests start the launcher with the
// real programs on a fresh folder, read the line that says where to log in, and go on from there
// in a real Chromium, and over HTTP as programs do. When a test ends the launcher is stopped:
// nothing may be left running, and the rows must add up.
package browser

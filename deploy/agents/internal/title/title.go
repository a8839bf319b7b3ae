// Package title makes the line that users see while a tool runs. A command may have a password in it, as an
// address may: those are for the ones who are asked for a permission.
package title

import "regexp"

// Command is the title of a command without a description.
const Command = "Run a command"

// secretParts are the parts of an address that may have keys in them: its user, its query and its fragment.
var secretParts = regexp.MustCompile(`(\w://)([^/\s]*@)?([^\s?#]*)[?#]?\S*`)

// WithoutKeys is a text without the parts of its addresses that may have keys in them.
func WithoutKeys(text string) string { return secretParts.ReplaceAllString(text, "$1$3") }

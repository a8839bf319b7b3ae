package agentproto

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Inert writes a prompt, or a part of one, such that no program that carries it to a model finds an order of its own in
// it, at whatever place. The characters that these programs look for become, in users' texts, XML's reference to the
// same character:
//
//	@path, @"path", @agent-name, @server:resource   Claude Code, Gemini CLI: the content of the file, read without the
//	                                                permission that the agent would need; a subagent; a resource
//	$name, [$name](path)                            Codex: the text of a skill; Gemini CLI: a command
//	/name                                           all: a command or skill; Claude Code also in the middle of a text
//
// XML means the same, and a model reads it so. Marks obeyed only at the beginning (!command, #note) no user can
// write there: a prompt begins with a tag. Inert changes nothing in its own result.
func Inert(text string) string {
	var b strings.Builder
	done := 0
	for i := range len(text) {
		reference := ""
		switch text[i] {
		case '@':
			reference = "&#64;"
		case '$':
			reference = "&#36;"
		case '/':
			if beginsWord(text, i) {
				reference = "&#47;"
			}
		}
		if reference != "" {
			b.WriteString(text[done:i])
			b.WriteString(reference)
			done = i + 1
		}
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// beginsWord reports whether the slash at i begins a word. Those of tags, and inside of paths and addresses, do not.
func beginsWord(text string, i int) bool {
	before, size := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i+1:])
	inWord := unicode.IsLetter(before) || unicode.IsDigit(before) || strings.ContainsRune("<;/:.~_-)", before)
	return (unicode.IsLetter(after) || unicode.IsDigit(after)) && (size == 0 || !inWord)
}

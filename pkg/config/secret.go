package config

import (
	"net/url"
	"slices"
	"strings"
)

// secretWords are words of variables' names that make their values secret.
var secretWords = []string{
	"key", "pass", "pwd", "pat", "credential", "credentials", "cred", "creds", "auth", "authorization", "cookie",
	"headers", "jwt", "dsn", "webhook",
}

// secretEndings do it also as the end of a word, as in PGPASSWORD.
var secretEndings = []string{"token", "secret", "password", "passwd", "passphrase", "apikey"}

// plainEndings are last words of names that say something about a secret, or where it is.
var plainEndings = []string{
	"file", "path", "dir", "id", "name", "type", "mode", "ttl", "ms", "timeout", "limit", "helper", "sock", "enabled",
}

// SecretName reports whether a variable's value is secret by its name: one of the words between its
// underscores is KEY, TOKEN, SECRET, PASSWORD or the like, as in AWS_SECRET_ACCESS_KEY, GITHUB_TOKEN_2
// and PGPASSWORD. API_KEY_FILE is not secret, nor is MAX_OUTPUT_TOKENS.
func SecretName(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	if len(words) == 0 || slices.Contains(plainEndings, words[len(words)-1]) {
		return false
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains(secretWords, word) ||
			slices.ContainsFunc(secretEndings, func(ending string) bool { return strings.HasSuffix(word, ending) })
	})
}

// SecretValues are the secrets of an environment, of entries "NAME=value": the values of secret names, and
// the passwords in the URLs of all others, as of a proxy.
func SecretValues(environ []string) (values []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if SecretName(name) {
			values = append(values, value)
			continue
		}
		u, err := url.Parse(value)
		if err != nil || u.User == nil {
			continue
		}
		if password, set := u.User.Password(); set {
			values = append(values, password)
		}
	}
	return values
}

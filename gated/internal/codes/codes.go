// Package codes has the one-time codes by which users become operators without a restart.
package codes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"arizuko/pkg/store"
)

const (
	// Life is how long a code may be used.
	Life = 10 * time.Minute
	// MaxTries is how many wrong codes end the code that is open, and maxTriesOfSender how many of one sender are
	// looked at: one stranger alone must not be able to end it.
	MaxTries         = 30
	maxTriesOfSender = 3
)

// alphabet has 32 letters and digits, without those that are mistaken for others.
const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// length is that of a code, without dashes: 60 bits.
const length = 12

// New returns a code such as ABCD-EFGH-2345.
func New() string {
	var random [length]byte
	_, _ = rand.Read(random[:]) // it never fails
	var b strings.Builder
	for i, r := range random {
		if i > 0 && i%4 == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(alphabet[int(r)%len(alphabet)])
	}
	return b.String()
}

// Hash is what is stored of a code, "" for a text that holds none. Case, dashes and spaces do not matter.
func Hash(code string) string {
	code = strings.Map(func(r rune) rune {
		if strings.ContainsRune(alphabet, r) {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	if code == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// Counts reports whether a sender may try the code that is open, nil for none. If it seems to live longer than codes
// do, the clock was set back.
func Counts(code *store.OperatorCode, sender string, now int64) bool {
	return code != nil && now < code.ExpiresAt && code.ExpiresAt-now <= Life.Milliseconds() &&
		code.Tries[sender] < maxTriesOfSender
}

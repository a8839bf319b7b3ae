// Package codes has the one-time codes by which users become operators without a restart.
package codes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"arizuko/gated/internal/rows"

	"golang.org/x/text/unicode/norm"
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
	return hashed(code)
}

func hashed(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// Cut returns a text without the code of a hash, and reports whether it holds that: in whatever case or width, and with
// whatever stands between the letters.
func Cut(text, hash string) (without string, holds bool) {
	type letter struct{ at, end int }
	var letters []letter
	var plain strings.Builder
	for at, c := range text {
		end := at + utf8.RuneLen(c)
		if c == utf8.RuneError {
			end = at + 1
		}
		for _, r := range strings.ToUpper(norm.NFKC.String(string(c))) {
			if strings.ContainsRune(alphabet, r) {
				letters = append(letters, letter{at, end})
				plain.WriteRune(r)
			}
		}
	}
	for i := 0; i+length <= len(letters); i++ {
		if hashed(plain.String()[i:i+length]) == hash {
			rest, _ := Cut(text[letters[i+length-1].end:], hash) // it may be there twice
			return text[:letters[i].at] + cutMark + rest, true
		}
	}
	return text, false
}

// cutMark stands in the place of a code.
const cutMark = "[code]"

// Counts reports whether a sender may try the code that is open, nil for none. If it seems to live longer than codes
// do, the clock was set back.
func Counts(code *rows.OperatorCode, sender string, now int64) bool {
	return code != nil && now < code.ExpiresAt && code.ExpiresAt-now <= Life.Milliseconds() &&
		code.Tries[sender] < maxTriesOfSender
}

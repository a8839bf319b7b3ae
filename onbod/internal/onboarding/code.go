package onboarding

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
)

// letters are those that are not mistaken for digits.
const letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"

// newCode returns a code such as ABCD-1234, one of 3.3 billion.
func newCode() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	n := binary.BigEndian.Uint64(b[:])
	code := []byte("....-....")
	for i := range code {
		switch {
		case i < 4:
			code[i] = letters[n%uint64(len(letters))]
			n /= uint64(len(letters))
		case i > 4:
			code[i] = byte('0' + n%10)
			n /= 10
		}
	}
	return string(code)
}

// normalCode returns a code as it is stored; the case and the dash do not matter.
func normalCode(code string) string {
	code = strings.ToUpper(strings.TrimSpace(code))
	if len(code) == 8 && !strings.Contains(code, "-") {
		code = code[:4] + "-" + code[4:]
	}
	return code
}

package groupconfig

import (
	"errors"
	"strconv"
	"strings"
)

// Bytes is an amount of memory in docker's notation: a whole number, with k, m or g for 1024,
// 1024² or 1024³.
type Bytes int64

var errBytes = errors.New("want a number with k, m or g, as in 512m or 2g")

// units in the order in which they are tried, largest first.
var units = [...]struct {
	letter byte
	shift  uint
}{{'g', 30}, {'m', 20}, {'k', 10}}

// UnmarshalText returns an error for a text that is no amount or overflows.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, shift := strings.ToLower(string(text)), uint(0)
	for _, u := range units {
		if cut, ok := strings.CutSuffix(number, string(u.letter)); ok {
			number, shift = cut, u.shift
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n > 1<<62>>shift {
		return errBytes
	}
	*b = Bytes(n << shift)
	return nil
}

// MarshalText uses the largest unit that leaves a whole number.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && b%(1<<u.shift) == 0 {
			return strconv.FormatInt(int64(b>>u.shift), 10) + string(u.letter)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

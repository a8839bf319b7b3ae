package render

import (
	"strings"
	"unicode"
)

// maxCluster is how many runes are kept together at most.
const maxCluster = 12

const joiner = '\u200d'

// A cluster is what a reader takes for one character, read rune by rune.
type cluster struct {
	runes    int
	last     rune
	flags    int  // regional indicators, of which two make a flag
	sentence bool // the last rune that is no blank ends a sentence
}

// add reports whether a rune belongs to the cluster.
func (c *cluster) add(r rune) bool {
	if c.runes >= maxCluster {
		return false
	}
	return extends(r) || c.last == joiner || regional(r) && c.flags%2 == 1
}

func (c *cluster) take(r rune) {
	c.runes++
	c.last = r
	if regional(r) {
		c.flags++
	}
	if !unicode.IsSpace(r) {
		c.sentence = strings.ContainsRune(".!?…。！？", r)
	}
}

// rank tells how good it is to cut between the cluster and a rune.
func (c *cluster) rank(next rune) int {
	switch {
	case c.sentence && (unicode.IsSpace(next) || unicode.IsSpace(c.last) || c.last > unicode.MaxLatin1 && c.last != '…'):
		return 2
	case unicode.IsSpace(next) || unicode.IsSpace(c.last):
		return 1
	}
	return 0
}

// extends tells the runes that belong to the one before them: combining marks, variation
// selectors, skin tones, tags and what joins emoji.
func extends(r rune) bool {
	return r == joiner || r >= 0x1f3fb && r <= 0x1f3ff || r >= 0xe0020 && r <= 0xe007f || unicode.Is(unicode.M, r)
}

func regional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxCluster is how many runes are kept together at most: a character with any number of accents
// must not make a part that cannot be cut.
const maxCluster = 12

// clusterLen returns the length in bytes of the first grapheme cluster of a text, which users see as
// one character. The text must not be empty.
func clusterLen(text string) int {
	if len(text) == 1 || text[0] < utf8.RuneSelf && text[1] < utf8.RuneSelf {
		return 1 // ASCII does not combine, and no line has a \r\n in it
	}
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(firstRunes(text, maxCluster), -1)
	return len(cluster)
}

func firstRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// A cutter reads a line cluster by cluster.
type cutter struct {
	cluster  string // the one before
	sentence bool   // the last rune that is not a space ends a sentence
}

// next reads the cluster at the beginning of a text and returns its length.
func (c *cutter) next(text string) int {
	n := clusterLen(text)
	c.read(text[:n])
	return n
}

// extend reads the beginning of the next span, as far as it belongs to the last cluster, and returns
// its length.
func (c *cutter) extend(text string) int {
	joined := c.cluster + firstRunes(text, maxCluster)
	n := clusterLen(joined)
	if n > len(c.cluster) {
		added := n - len(c.cluster)
		c.read(joined[:n])
		return added
	}
	return 0
}

func (c *cutter) read(cluster string) {
	c.cluster = cluster
	if last, _ := utf8.DecodeLastRuneInString(cluster); !unicode.IsSpace(last) {
		c.sentence = strings.ContainsRune(".!?…。！？", last)
	}
}

// rank returns how good it is to cut between the last cluster and a text: 2 between sentences, 1
// between words.
func (c *cutter) rank(text string) int {
	last, _ := utf8.DecodeLastRuneInString(c.cluster)
	next, _ := utf8.DecodeRuneInString(text)
	blank := unicode.IsSpace(next) || unicode.IsSpace(last)
	switch {
	case c.sentence && (blank || last > unicode.MaxLatin1 && last != '…'):
		return 2
	case blank:
		return 1
	}
	return 0
}

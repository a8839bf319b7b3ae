package engagement_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// testSeed is the seed of all properties but in `make verify`, which takes new ones: whether a case comes about is not left to
// chance. With another one requireSeen may ask for more than there is.
const testSeed = "1"

// explores is whether new seeds are taken.
func explores() bool {
	return os.Getenv("VERIFY") != "" || flag.Lookup("rapid.seed").Value.String() != testSeed
}

func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); os.Getenv("VERIFY") == "" && seed.Value.String() == "0" {
		if err := seed.Value.Set(testSeed); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

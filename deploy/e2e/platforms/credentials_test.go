package platforms

import (
	"strings"
	"testing"
)

// TestATokenThatExpiresAndIsGoodAgain has an adapter wait for as long as one does that an operator
// has to help.
func TestATokenThatExpiresAndIsGoodAgain(t *testing.T) {
	each(t, func(f *front) {
		f.say(f.dm, "slow 1 private 0")
		f.running(f.dm)
		f.SetTokenValid(false)
		f.connection("bad_credentials")
		f.say(f.dm, "private 1")
		f.until("the answer waits for the token", func() bool {
			return f.value(`SELECT error_class || ' ' || attempts FROM deliveries WHERE state = 'queued'`) == "auth 0"
		})
		f.SetTokenValid(true)
		f.onceEach([]string{"slow 1 private 0", "private 1"})
		f.connection("connected")
	})
}

// wrongToken is nobody's.
const wrongToken = "a-token-of-nobody"

func TestABadTokenIsSaidOnce(t *testing.T) {
	each(t, func(f *front) {
		f.down(f.about.Daemon)
		before, err := f.Log(f.about.Daemon)
		f.ok(err)
		f.up(f.about.Daemon, f.about.TokenEnv+"="+wrongToken)
		detail := f.connection("bad_credentials")
		log, err := f.Log(f.about.Daemon)
		f.ok(err)
		log = strings.TrimPrefix(log, before)
		if n := strings.Count(log, f.about.TokenEnv); n != 1 || strings.Contains(log+detail, wrongToken) || !strings.Contains(detail, f.about.TokenEnv) {
			f.t.Errorf("it says %q, and %d times:\n%s", detail, n, log)
		}
		f.say(f.dm, "hello?")
		f.down(f.about.Daemon)
		f.up(f.about.Daemon)
		f.onceEach([]string{"hello?"})
	})
}

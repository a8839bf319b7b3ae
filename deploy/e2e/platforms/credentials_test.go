package platforms

import (
	"strings"
	"testing"

	"arizuko/pkg/testkit/need"
)

// An adapter without a valid token retries as slowly as for errors that only an operator can fix.
func TestAdapter_TokenExpiresAndIsRestored_DeliversQueuedAnswers(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		f.say(f.dm, "until go private 0")
		f.waitRunning(f.dm)
		f.SetTokenValid(false)
		f.LetGo("main", "go")
		f.waitConnection("bad_credentials")
		f.say(f.dm, "private 1")
		f.Until("the answer to wait for the token", func() bool {
			return f.Value(`SELECT error_class || ' ' || attempts FROM deliveries WHERE state = 'queued'`) == "auth 0"
		})
		f.SetTokenValid(true)
		f.wantOneAnswerEach([]string{"until go private 0", "private 1"})
		f.waitConnection("connected")
	})
}

// wrongToken is a token that no platform knows.
const wrongToken = "an-invalid-token"

func TestAdapter_InvalidToken_LoggedOnceWithoutItsValue(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		f.Kill(f.info.Daemon)
		before := f.Log(f.info.Daemon)
		f.Restart(f.info.Daemon, f.info.TokenEnv+"="+wrongToken)
		detail := f.waitConnection("bad_credentials")
		log := strings.TrimPrefix(f.Log(f.info.Daemon), before)
		if n := strings.Count(log, f.info.TokenEnv); n != 1 || strings.Contains(log+detail, wrongToken) || !strings.Contains(detail, f.info.TokenEnv) {
			f.T.Errorf("detail %q, logged %d times:\n%s", detail, n, log)
		}
		f.say(f.dm, "hello?")
		f.Kill(f.info.Daemon)
		f.Restart(f.info.Daemon)
		f.wantOneAnswerEach([]string{"hello?"})
	})
}

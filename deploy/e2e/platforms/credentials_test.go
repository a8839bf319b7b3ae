package platforms

import (
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

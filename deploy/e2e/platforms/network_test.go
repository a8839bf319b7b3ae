package platforms

import (
	"testing"
)

func TestAdapter_NetworkOutage_DeliversAfterwardsInOrder(t *testing.T) {
	onEachPlatform(t, func(f *fixture) {
		f.say(f.dm, "until go private 0")
		f.waitRunning(f.dm)
		f.SetReachable(false)
		f.LetGo("main", "go")
		f.Until("the answer to wait for the network", func() bool {
			return f.Value(`SELECT count(*) FROM deliveries WHERE attempts > 0`) == "1"
		})
		f.say(f.dm, "private 1")
		f.say(f.dm, "private 2")
		f.waitConnection("degraded")
		f.SetReachable(true)
		f.wantOneAnswerEach([]string{"until go private 0", "private 1", "private 2"})
		f.wantOrder(f.dm, "private ")
		f.waitConnection("connected")
	})
}

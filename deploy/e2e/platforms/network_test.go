package platforms

import (
	"fmt"
	"testing"

	"arizuko/pkg/testkit/need"
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

func TestAdapter_ConnectionsDrop_LosesNothing(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		thread := f.NewThread("deploys")
		var texts []string
		for n := range 4 {
			texts = append(texts, fmt.Sprintf("private %d", 2*n), fmt.Sprintf("private %d", 2*n+1), fmt.Sprintf("public %d", n))
			f.say(f.dm, texts[len(texts)-3])
			f.DropConnections()
			f.say(f.dm, texts[len(texts)-2])
			f.ask(thread, texts[len(texts)-1])
			f.DropConnections()
			f.waitStored(texts[len(texts)-1])
		}
		f.wantOneAnswerEach(texts)
		f.wantOrder(f.dm, "private ")
		f.wantOrder(thread, "public ")
	})
}

func TestAdapter_DuplicateAndReorderedEvents_StoredOnce(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		thread := f.NewThread("deploys")
		var texts []string
		for round := range 3 {
			for n := range 4 {
				texts = append(texts, fmt.Sprintf("private %d", 4*round+n), fmt.Sprintf("public %d", 4*round+n))
				f.say(f.dm, texts[len(texts)-2])
				f.ask(thread, texts[len(texts)-1])
			}
			for _, text := range texts {
				f.waitAnswer(text)
			}
			if round < 2 {
				f.DuplicateAndReorder(4)
			}
		}
		f.wantOneAnswerEach(texts)
	})
}

package platforms

import (
	"fmt"
	"testing"
)

func TestTheNetworkIsGoneForAWhile(t *testing.T) {
	each(t, func(f *front) {
		f.say(f.dm, "slow 1 private 0")
		f.running(f.dm)
		f.SetReachable(false)
		f.until("the answer waits for the network", func() bool {
			return f.value(`SELECT count(*) FROM deliveries WHERE attempts > 0`) == "1"
		})
		f.say(f.dm, "private 1")
		f.say(f.dm, "private 2")
		f.connection("degraded")
		f.SetReachable(true)
		f.onceEach([]string{"slow 1 private 0", "private 1", "private 2"})
		f.inOrder(f.dm, "private ")
		f.connection("connected")
	})
}

func TestConnectionsBreakAgainAndAgain(t *testing.T) {
	each(t, func(f *front) {
		thread := f.NewThread("deploys")
		var told []string
		for n := range 4 {
			told = append(told, fmt.Sprintf("private %d", 2*n), fmt.Sprintf("private %d", 2*n+1), fmt.Sprintf("public %d", n))
			f.say(f.dm, told[len(told)-3])
			f.DropConnections()
			f.say(f.dm, told[len(told)-2])
			f.call(thread, told[len(told)-1])
			f.DropConnections()
			f.stored(told[len(told)-1])
		}
		f.onceEach(told)
		f.inOrder(f.dm, "private ")
		f.inOrder(thread, "public ")
	})
}

func TestEventsComeTwiceAndInDisorder(t *testing.T) {
	each(t, func(f *front) {
		thread := f.NewThread("deploys")
		var told []string
		for round := range 3 {
			for n := range 4 {
				told = append(told, fmt.Sprintf("private %d", 4*round+n), fmt.Sprintf("public %d", 4*round+n))
				f.say(f.dm, told[len(told)-2])
				f.call(thread, told[len(told)-1])
			}
			for _, text := range told {
				f.answer(text)
			}
			if round < 2 {
				f.DuplicateAndReorder(4)
			}
		}
		f.onceEach(told)
	})
}

// Measures calls of the container runtime interface, as kubelet makes them: one connection, a deadline on every call.
//
//	client -target straight=/run/a.sock -target splice=/run/b.sock -rounds 5 -seconds 1 -in-flight 1 -method Version
//
// Targets take turns within a round, so that the machine's other work affects all of them. The output is JSON: for each
// target the median and the 99th percentile of every round, and the number of calls per second.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const deadline = 2 * time.Minute // kubelet's runtimeRequestTimeout

type target struct {
	name   string
	client cri.RuntimeServiceClient
}

type figures struct {
	Calls     int       `json:"calls"`
	P50       []float64 `json:"p50_us"`
	P99       []float64 `json:"p99_us"`
	PerSecond []float64 `json:"per_second"`
}

var methods = map[string]func(context.Context, cri.RuntimeServiceClient) error{
	"Version": func(ctx context.Context, client cri.RuntimeServiceClient) error {
		_, err := client.Version(ctx, &cri.VersionRequest{})
		return err
	},
	"Status": func(ctx context.Context, client cri.RuntimeServiceClient) error {
		_, err := client.Status(ctx, &cri.StatusRequest{})
		return err
	},
	"ListContainers": func(ctx context.Context, client cri.RuntimeServiceClient) error {
		_, err := client.ListContainers(ctx, &cri.ListContainersRequest{})
		return err
	},
	"ListPodSandbox": func(ctx context.Context, client cri.RuntimeServiceClient) error {
		_, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
		return err
	},
}

type targets []target

func (all *targets) String() string { return fmt.Sprint(*all) }

func (all *targets) Set(text string) error {
	name, path, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%q should be NAME=SOCKET", text)
	}
	connection, err := grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		return err
	}
	*all = append(*all, target{name, cri.NewRuntimeServiceClient(connection)})
	return nil
}

func main() {
	var all targets
	flag.Var(&all, "target", "NAME=SOCKET, as often as there are some to compare")
	rounds := flag.Int("rounds", 5, "how often each has its turn")
	seconds := flag.Float64("seconds", 1, "how long a turn takes")
	calls := flag.Int("calls", 0, "how many calls a turn makes, instead of a time")
	inFlight := flag.Int("in-flight", 1, "how many calls at a time")
	persist := flag.Bool("persist", false, "go on after calls that fail, and say when calls succeeded again")
	method := flag.String("method", "Version", "which call, or `mixed` for all of them in turn")
	flag.Parse()
	kinds := chosen(*method)
	if *persist {
		through(all[0], kinds[0], time.Duration(*seconds*float64(time.Second)))
		return
	}
	found := map[string]*figures{}
	for _, each := range all {
		found[each.name] = &figures{}
		turn(each, kinds, *inFlight, 200, 0) // the first calls cost more
	}
	for range *rounds {
		for _, each := range all {
			taken, spent := turn(each, kinds, *inFlight, *calls, time.Duration(*seconds*float64(time.Second)))
			found[each.name].add(taken, spent)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

func chosen(name string) []func(context.Context, cri.RuntimeServiceClient) error {
	if name == "mixed" {
		return []func(context.Context, cri.RuntimeServiceClient) error{
			methods["ListPodSandbox"], methods["ListContainers"], methods["Status"], methods["Version"],
		}
	}
	call, found := methods[name]
	if !found {
		log.Fatalf("no method named %s", name)
	}
	return []func(context.Context, cri.RuntimeServiceClient) error{call}
}

// turn makes this many calls, or calls until the time is up.
func turn(of target, kinds []func(context.Context, cri.RuntimeServiceClient) error, inFlight, calls int, limit time.Duration) ([]time.Duration, time.Duration) {
	taken := make([][]time.Duration, inFlight)
	started := time.Now()
	var group sync.WaitGroup
	for worker := range inFlight {
		group.Go(func() {
			for n := 0; (calls > 0 && n < calls/inFlight) || (calls == 0 && time.Since(started) < limit); n++ {
				taken[worker] = append(taken[worker], one(of, kinds[n%len(kinds)]))
			}
		})
	}
	group.Wait()
	spent := time.Since(started)
	return slices.Concat(taken...), spent
}

// through calls despite errors, and prints each change: the time, and the error or "ok".
func through(of target, call func(context.Context, cri.RuntimeServiceClient) error, limit time.Duration) {
	last := ""
	for started := time.Now(); time.Since(started) < limit; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		said := "ok"
		if err := call(ctx, of.client); err != nil {
			said = status.Code(err).String()
		}
		cancel()
		if said != last {
			last = said
			fmt.Printf("%d %s\n", time.Now().UnixMilli(), said)
		}
	}
}

func one(of target, call func(context.Context, cri.RuntimeServiceClient) error) time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	started := time.Now()
	if err := call(ctx, of.client); err != nil {
		log.Fatalf("%s: %v", of.name, err)
	}
	return time.Since(started)
}

func (f *figures) add(taken []time.Duration, spent time.Duration) {
	slices.Sort(taken)
	at := func(share float64) float64 {
		return float64(taken[int(share*float64(len(taken)-1))].Nanoseconds()) / 1e3
	}
	f.Calls += len(taken)
	f.P50 = append(f.P50, at(0.5))
	f.P99 = append(f.P99, at(0.99))
	f.PerSecond = append(f.PerSecond, float64(len(taken))/spent.Seconds())
}

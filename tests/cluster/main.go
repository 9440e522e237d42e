// SPDX-License-Identifier: Apache-2.0

// Command cluster is a Kubernetes control plane in one multi-call binary: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubectl and kwok. The name it is called by, or else its first
// argument, chooses the program:
//
//	ln -s cluster kubectl && ./kubectl get nodes
//	./cluster kubectl get nodes
//
// One binary, because the programs share nearly all of their code: six separate ones would take several
// times as long to link and as much disk. It is a module of its own, because k8s.io/kubernetes forces
// versions that the product must not inherit.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	// Time zones of CronJobs, on machines without a zone database.
	_ "time/tzdata"
)

// programs are the programs in this binary. Each reads os.Args as if it had a binary of its own and
// returns the exit code; some exit on their own.
var programs = map[string]func() int{
	"etcd":                    etcd,
	"kube-apiserver":          apiServer,
	"kube-controller-manager": controllerManager,
	"kube-scheduler":          scheduler,
	"kubectl":                 kubectl,
	"kwok":                    kwok,
}

func main() {
	run, args := choose(os.Args)
	if run == nil {
		usage(os.Stderr)
		os.Exit(2)
	}
	os.Args = args
	if err := followLifeline(os.Getenv(lifelineEnv)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", args[0], err)
		os.Exit(2)
	}
	os.Exit(run())
}

// choose returns the program that the arguments name and the arguments it should see, or nil.
func choose(args []string) (func() int, []string) {
	if len(args) == 0 {
		return nil, nil
	}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if run, ok := programs[name]; ok {
		return run, args
	}
	if len(args) < 2 {
		return nil, nil
	}
	return programs[args[1]], args[1:]
}

func usage(w io.Writer) {
	names := slices.Sorted(maps.Keys(programs))
	fmt.Fprintf(w, "usage: cluster PROGRAM [ARGUMENT...]\n\nor a symbolic link named as the program. Programs: %s\n",
		strings.Join(names, ", "))
}

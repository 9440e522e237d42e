// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the transcript instead of comparing it")

// script runs commands and keeps what was typed and printed.
type script struct {
	t          *testing.T
	program    string
	kubeconfig string
	text       bytes.Buffer
	names      map[string]string // of what differs from run to run, by what it is called in the transcript
}

// say adds a line of explanation.
func (s *script) say(format string, args ...any) {
	fmt.Fprintf(&s.text, "\n# %s\n", fmt.Sprintf(format, args...))
}

// run runs satchel, and wants an exit code. It returns what was printed.
func (s *script) run(code int, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, s.program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "NO_COLOR=1")
	output, err := command.CombinedOutput()
	got := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&s.text, "$ satchel %s\n%s", typed(args), output)
	if got != 0 {
		fmt.Fprintf(&s.text, "[exit code %d]\n", got)
	}
	if got != code {
		s.t.Fatalf("satchel %s: exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, output)
	}
	return string(output)
}

// typed is how arguments are typed.
func typed(args []string) string {
	words := make([]string, 0, len(args))
	for _, arg := range args {
		if strings.Contains(arg, " ") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// name has a value that differs from run to run called something else in the transcript.
func (s *script) name(value, as string) { s.names[value] = as }

// variable are texts that differ from run to run, and what stands for them.
var variable = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC|[+-]\d\d:\d\d)?`), "<time>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:<port>"},
	{regexp.MustCompile(`(sha256:|sha1:)[0-9a-f]{7,64}`), "${1}<digest>"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "<commit>"},
	{regexp.MustCompile(`commit [0-9a-f]{12}\b`), "commit <commit>"},
	{regexp.MustCompile(`\b[0-9A-F]{40}\b`), "<key>"},
	{regexp.MustCompile(`\bweb-[0-9a-f]{12}\b`), "web-<plan>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`-[0-9a-z]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-<pod>"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h)){1,3}\b( ago)?`), "<age>"},
	{regexp.MustCompile(`([^\s│├└─])[ \t]{2,}`), "$1  "}, // widths follow what is in the columns
	{regexp.MustCompile(`-{4,}`), "----"},
}

// transcript is what was typed and printed, without what differs from run to run.
func (s *script) transcript() string {
	text := s.text.String()
	for value, as := range s.names {
		text = strings.ReplaceAll(text, value, as)
	}
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.as)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	// What is waited for meanwhile depends on how fast the machine is.
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, ": waiting: ") })
	return strings.TrimLeft(strings.Join(lines, "\n"), "\n")
}

// change edits the deployment, as another user does.
func (s *script) change(r *rig, edit func(*v1alpha1.BundleDeployment)) {
	s.t.Helper()
	d := s.deployment(r)
	before := d.DeepCopy()
	edit(d)
	if err := r.admin.Patch(s.t.Context(), d, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) deployment(r *rig) *v1alpha1.BundleDeployment {
	s.t.Helper()
	var d v1alpha1.BundleDeployment
	if err := r.admin.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &d); err != nil {
		s.t.Fatal(err)
	}
	return &d
}

// oldest is the first revision in the history.
func (s *script) oldest(r *rig) string {
	s.t.Helper()
	history := s.deployment(r).Status.History
	if len(history) == 0 {
		s.t.Fatal("there is no history")
	}
	return history[len(history)-1].Revision
}

// waits tells whether an approval is asked for.
func (s *script) waits(r *rig) bool {
	s.t.Helper()
	d := s.deployment(r)
	return d.Status.ObservedGeneration == d.Generation && conditions.GetReason(d, v1alpha1.ApprovalPendingCondition) == v1alpha1.ReasonApprovalRequired
}

// pod is the name of one of the deployment's Pods.
func (s *script) pod(r *rig) string {
	s.t.Helper()
	var name string
	s.eventually("one Pod runs and none ends", func() bool {
		var pods corev1.PodList
		if err := r.admin.List(s.t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			s.t.Fatal(err)
		}
		for _, pod := range pods.Items {
			name = pod.Name
		}
		return len(pods.Items) == 2
	})
	return name
}

func (s *script) eventually(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain: %s", what)
		}
		select {
		case <-s.t.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// compare holds the transcript against the one that is kept.
func (s *script) compare(file string) {
	s.t.Helper()
	got, path := s.transcript(), filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if got != string(want) {
		s.t.Errorf("the transcript is another one (go test ./tests/session -update writes it, go test ./tests/terminal -update then draws the images):\n%s", got)
	}
}

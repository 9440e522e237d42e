// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/see"
	"github.com/satchel-dev/satchel/internal/cli/tree"
	"github.com/satchel-dev/satchel/tests/clirig"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestEachLine(t *testing.T) {
	long := strings.Repeat("x", 3*see.LongestLine)
	var got []string
	err := see.EachLine(strings.NewReader("one\r\n\n"+long+"\nlast"), func(line string) error {
		got = append(got, line)
		return nil
	})
	if diff := cmp.Diff([]string{"one", "", long[:see.LongestLine] + " … (cut)", "last"}, got); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%.500s", err, diff)
	}
	refused := errors.New("refused")
	if err := see.EachLine(strings.NewReader("a\nb\n"), func(string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	last := see.LastLines{Limit: 2}
	for _, line := range []string{"a", "b", "c"} {
		last.Add(line)
	}
	if diff := cmp.Diff([]string{"b", "c"}, last.Lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLinesAreSafe(t *testing.T) {
	var out bytes.Buffer
	w := &see.LineWriter{Out: &out, Prefix: true}
	s := see.LogSource{Pod: "web-1" + steering, LogContainer: tree.LogContainer{Name: "main"}}
	if err := w.Write(s, "progress"+steering+"\r"); err != nil || hiddenIn(out.String()) != "" || !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestLinesAboutADeployment(t *testing.T) {
	about := see.AboutDeployment(aDeployment(called("app"), reference))
	for line, want := range map[string]bool{
		`{"level":"info","ts":"2026-01-01","msg":"x","controller":"bundledeployment","BundleDeployment":{"name":"app","namespace":"demo"},"namespace":"demo","name":"app"}`: true,
		`{"level":"info","msg":"x","namespace":"demo","name":"podinfo","controller":"bundlesource"}`:                                                                        true,
		`{"level":"info","msg":"x","namespace":"demo","name":"other"}`:                                                                                                      false,
		`{"level":"info","msg":"x","namespace":"elsewhere","name":"app"}`:                                                                                                   false,
		`{"level":"info","msg":"\"name\":\"app\" \"namespace\":\"demo\"","namespace":"a","name":"b"}`:                                                                       false,
		`2026-01-01T00:00:00Z	INFO	reconcile failed	{"controller": "bundledeployment", "namespace": "demo", "name": "app"}`:                                                 true,
		`2026-01-01T00:00:00Z	INFO	reconcile failed	{"controller": "bundledeployment", "namespace": "demo", "name": "apps"}`:                                                false,
		`2026-01-01T00:00:00Z	DEBUG	event	{"object": {"kind":"BundleDeployment","namespace":"demo","name":"app"}}`:                                                          true,
		`starting manager`: false,
	} {
		if got := about(line); got != want {
			t.Errorf("%v for %s", got, line)
		}
	}
}

// logFile writes a log as container runtimes keep it.
func logFile(t *testing.T, lines ...string) string {
	t.Helper()
	var text strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&text, "%s stdout F %s\n", time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339Nano), line)
	}
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestLogsOfCluster reads logs that a control plane of its own serves from files.
func TestLogsOfCluster(t *testing.T) {
	controlplane.StopShared(t)
	main, side := logFile(t, "first", "second", "third \x1b[31mred"), logFile(t, "of the side")
	controllers := logFile(t, `{"msg":"of another","namespace":"demo","name":"x"}`, `{"msg":"applied","namespace":"NAMESPACE","name":"app"}`)
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Nodes: 1, Progress: os.Stderr, KwokConfig: fmt.Sprintf(`
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {name: all}
spec:
  logs:
  - {containers: [main], logsFile: %s, follow: true}
  - {containers: [side], logsFile: %s, follow: true}
  - {containers: [manager], logsFile: %s, follow: true}
`, main, side, controllers)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	clirig.InstallCRDs(t, cp)
	c := testCluster{clirig.On(t, cp, Run)}
	content, err := os.ReadFile(controllers)
	if err == nil {
		err = os.WriteFile(controllers, bytes.ReplaceAll(content, []byte("NAMESPACE"), []byte(c.Namespace)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Create(aDeployment(called("app"), lists(t, c.object("app", web("web", "")))))
	c.Create(aDeployment(called("empty")))
	c.object("", web("foreign", ""))
	c.logsRead()
	c.logsFollowed(main)
}

func (c testCluster) logsRead() {
	c.T.Helper()
	got := c.Eventually("of the side", "logs", "app")
	c.Want(got, kit.ExitOK, "/main] first\n", "/main] second\n", "/main] third \\u001b[31mred\n", "/side] of the side\n")
	if strings.Contains(got.Out, "foreign") || got.Err != "" {
		c.T.Errorf("got %s", got)
	}
	if got := c.Satchel("logs", "app", "-c", "main", "--tail", "1", "--prefix=false"); got.Out != "third \\u001b[31mred\n" {
		c.T.Errorf("got %s", got)
	}
	c.Want(c.Satchel("logs", "app", "-c", "none"), kit.ExitError, `no Pod of app has a container "none"`)
	c.Want(c.Satchel("logs", "empty"), kit.ExitOK, "empty has no Pods; tree shows what it has.\n")
	c.Want(c.Satchel("logs", "app", "--follow", "--previous"), kit.ExitError, "leave --follow or --previous out")
	c.Want(c.Satchel("logs", "app", "--controller"), kit.ExitError, `no controllers run as Pods in the namespace "satchel-system"`)
	c.object("", "{apiVersion: v1, kind: Pod, metadata: {name: controller, labels: {app.kubernetes.io/part-of: satchel}}, spec: {containers: [{name: manager, image: x}]}}")
	got = c.Eventually("applied", "logs", "app", "--controller", "--system-namespace", c.Namespace)
	if !strings.HasPrefix(got.Out, `[controller/manager] {"msg":"applied",`) || strings.Contains(got.Out, "of another") {
		c.T.Errorf("got %s", got)
	}
	c.object("", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: some}, rules: [{apiGroups: [satchel.dev], resources: [bundledeployments], verbs: [get]},
		{apiGroups: [apps], resources: [deployments, replicasets], verbs: [get, list]}, {apiGroups: [""], resources: [pods], verbs: [list]}]}`)
	c.object("", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: some}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: some}, subjects: [{kind: User, name: reader}]}`)
	got = c.Eventually("Not shown: pods/log", "logs", "app", "--as", "reader")
	c.Want(got, kit.ExitOK, `Not shown: pods/log in the namespace "`+c.Namespace+`": you may not get them; ask an administrator for that permission`+"\n")
	if strings.Count(got.Err, "pods/log") != 1 {
		c.T.Errorf("more than one line: %s", got.Err)
	}
}

// logsFollowed writes to a log while logs -f runs.
func (c testCluster) logsFollowed(file string) {
	c.T.Helper()
	f := c.Follow("logs", "app", "-f", "--tail", "1")
	f.Until("/main] third")
	log, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = log.WriteString("2026-01-01T00:01:00Z stdout F a new line\n")
	}
	if err := errors.Join(err, log.Close()); err != nil {
		c.T.Fatal(err)
	}
	f.Until("/main] a new line\n")
	// A Pod that is created later is followed, too.
	before := f.Out.String()
	c.scale("web", 2)
	f.UntilMore("/side] of the side\n", before)
	f.Interrupt()
}

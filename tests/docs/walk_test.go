// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/satchel-dev/satchel/tests/docs/markdown"
	"github.com/satchel-dev/satchel/tests/installation"
)

var update = flag.Bool("update", false, "write the transcript of docs/walk.md instead of comparing it")

// walkPage is a transcript from an empty cluster to an empty cluster.
const walkPage = "docs/walk.md"

// walk follows the page on a cluster without Satchel, and wants the cluster to be as before in the end.
func (r *rig) walk(t *testing.T, page markdown.Page) tally {
	before := r.objects(t)
	p := &reader{rig: r, home: t.TempDir()}
	transcripts := map[int]string{}
	for _, step := range page.Steps {
		switch {
		case step.Hidden && strings.TrimSpace(step.Text) == "controllers":
			r.startControllers(t) // the Pods of this cluster run nothing
			continue
		case step.Language != "console":
			if err := p.follow(t.Context(), step); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
			continue
		}
		p.tally.ran++
		transcript, err := p.console(t.Context(), step.Text)
		if transcript == "" || err != nil && !*update {
			t.Fatalf("%s: %v\n(SATCHEL_DOCS=walk go test ./tests/docs -run TestDocs -update writes the transcript)", step, err)
		}
		transcripts[step.Line] = transcript
	}
	if *update {
		rewrite(t, page, transcripts)
	}
	after := r.objects(t)
	for _, object := range slices.Sorted(maps.Keys(after)) {
		if !before[object] {
			t.Errorf("the walk leaves %s behind", object)
		}
	}
	for object := range before {
		if !after[object] {
			t.Errorf("the walk took %s away", object)
		}
	}
	t.Logf("%d objects before, %d after", len(before), len(after))
	return p.tally
}

// objects are all objects of the cluster, but for what comes and goes by itself.
func (r *rig) objects(t *testing.T) map[string]bool {
	t.Helper()
	kinds, err := discovery.NewDiscoveryClientForConfig(r.cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(r.cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains([]string{"events", "leases"}, resource.Name) {
				continue
			}
			objects, err := client.Resource(group.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("listing %s: %v", resource.Name, err)
			}
			for _, o := range objects.Items {
				found[strings.TrimSpace(fmt.Sprintf("%s.%s %s/%s", resource.Name, group.Group, o.Namespace, o.Name))] = true
			}
		}
	}
	return found
}

// rewrite puts transcripts in the place of the blocks of a page, by their lines.
func rewrite(t *testing.T, page markdown.Page, transcripts map[int]string) {
	t.Helper()
	path := filepath.Join(installation.Root(), page.Name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(transcripts))) {
		end := at + slices.Index(lines[at:], "```")
		lines = slices.Concat(lines[:at], transcriptLines(transcripts[at]), lines[end:])
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// transcriptLines are the lines that a reader needs: what was waited for meanwhile depends on the machine.
func transcriptLines(transcript string) []string {
	lines := strings.Split(strings.TrimRight(transcript, "\n"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, ": waiting: ") })
}

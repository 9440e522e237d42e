// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/costly"
	"github.com/satchel-dev/satchel/tests/e2erig"
	"github.com/satchel-dev/satchel/tests/installation"
)

// memoryLimit is the limit of the container in config/manager.
const memoryLimit = 1536 << 20

// M25, M26: a tenant with three namespaces installs a kustomization and a chart that take minutes to convert, and edits each of
// them ten times a second. The controller and its workers together stay within the memory limit of their container, and no
// worker is left when the attacker's deployments are deleted and the controller is told to end.
func TestM25MemoryUnderAttack(t *testing.T) {
	releaseOnly(t)
	const during = 90 * time.Second
	t.Setenv("GOMEMLIMIT", "400MiB") // as in config/manager; read by processes that start from here on
	r := newRig(t)
	r.Kill(deploymentController)
	t.Cleanup(func() {
		if err := r.Start(deploymentController); err != nil {
			t.Error(err)
		}
	})
	controller := r.instance(t, deploymentController, "attacked")
	bundles := map[string]fs.FS{"kustomization": costly.Kustomization(2000), "chart": costly.Chart()}
	images := map[string]string{}
	for name, files := range bundles {
		images[name] = r.Push(t, "costly-"+name+":v1", files)
	}
	var keys []client.ObjectKey
	for range 3 {
		namespace := r.Namespace(t)
		for name, image := range images {
			keys = append(keys, r.Deploy(t, namespace, name, image, nil))
		}
	}
	end := r.editing(t, keys)
	peak, workers := r.peakMemory(t, controller, during)
	end()
	for _, key := range keys {
		r.namesLimit(t, key)
		r.Remove(t, key)
	}
	t.Logf("at most %d MiB in the controller and %d workers together, of %d MiB", peak>>20, workers, memoryLimit>>20)
	if peak > memoryLimit {
		t.Errorf("the controller and its workers took %d MiB, more than the limit of their container, %d MiB", peak>>20, memoryLimit>>20)
	}
	if workers == 0 {
		t.Error("no worker was seen")
	}
	began := processTree(controller.process.Process.Pid)
	if _, err := controller.end(t); err != nil {
		t.Error(err)
	}
	for _, process := range began {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", process)); err == nil {
			t.Errorf("process %d is left", process)
		}
	}
}

// namesLimit waits until a deployment names the limit that it exceeded. The conversions of the attacker come one after the other,
// and each may take minutes on a loaded machine.
func (r *rig) namesLimit(t *testing.T, key client.ObjectKey) {
	t.Helper()
	var d v1alpha1.BundleDeployment
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 5*patience, true, func(ctx context.Context) (bool, error) {
		if err := r.Admin.Get(ctx, key, &d); err != nil {
			return false, nil // the API server is loaded as well
		}
		reason := conditions.GetReason(&d, meta.ReadyCondition)
		return reason == v1alpha1.ReasonLimitExceeded || reason == v1alpha1.ReasonCPUBudgetExceeded, nil
	})
	if err != nil {
		t.Fatalf("no limit is named:\n%s", e2erig.Describe(&d))
	}
	t.Logf("%s says: %s", key, conditions.GetMessage(&d, meta.ReadyCondition))
}

// editing changes each deployment ten times a second until it is ended.
func (r *rig) editing(t *testing.T, keys []client.ObjectKey) (end func()) {
	t.Helper()
	config := r.CP.RESTConfig()
	config.QPS, config.Burst = -1, -1
	editor, err := installation.Client(config) // or the test itself would wait for the same client
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var editors sync.WaitGroup
	for _, key := range keys {
		editors.Go(func() {
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				d := &v1alpha1.BundleDeployment{}
				d.Namespace = key.Namespace
				d.Name = key.Name
				patch := fmt.Appendf(nil, `{"spec":{"processors":[{"metadata":{"annotations":{"edit":"%d"}}}]}}`, i)
				_ = editor.Patch(ctx, d, client.RawPatch("application/merge-patch+json", patch))
			}
		})
	}
	return func() { cancel(); editors.Wait() }
}

// peakMemory looks ten times a second how much memory a process and its children have, and returns the most, in bytes, and the
// highest number of children.
func (r *rig) peakMemory(t *testing.T, i *instance, during time.Duration) (peak int64, children int) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for until := time.Now().Add(during); time.Now().Before(until); <-ticker.C {
		tree := processTree(i.process.Process.Pid)
		var sum int64
		for _, process := range tree {
			sum += proportional(process)
		}
		peak = max(peak, sum)
		children = max(children, len(tree)-1)
	}
	return peak, children
}

// processTree is a process with its children; workers have none.
func processTree(root int) []int {
	tree := []int{root}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		// The name of the program stands in parentheses and may hold spaces; state and parent follow it.
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		process, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if parent, _ := strconv.Atoi(fields[1]); parent == root && process != root {
			tree = append(tree, process)
		}
	}
	slices.Sort(tree)
	return tree
}

// proportional is the memory of a process in bytes, with pages that others share counted in parts; 0 if it ended.
func proportional(process int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", process))
	if err != nil {
		return 0
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		if size, found := strings.CutPrefix(lines.Text(), "Pss:"); found {
			kibibytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
			return kibibytes << 10
		}
	}
	return 0
}

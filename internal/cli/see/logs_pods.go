// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/tree"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// LogSource is a container that logs are read from.
type LogSource struct {
	tree.LogContainer

	namespace, Pod, uid string
	since               time.Time // when it was read before; zero for never
	opened              bool      // there was a log
}

// key tells a container from one of the same name in another Pod, and from itself before it was started again.
func (s LogSource) key() string { return fmt.Sprintf("%s/%s/%d", s.uid, s.Name, s.Restarts) }

// podResource are the Pods.
var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// podsOf finds the containers of a deployment's Pods. It only considers objects of the inventory that may own Pods.
func (r *logReader) podsOf(ctx context.Context, t kit.Target) ([]LogSource, error) {
	d, err := r.Deployment(ctx, t)
	if err != nil {
		return nil, err
	}
	found, err := tree.Of(ctx, r.Explorer, d, func(kind schema.GroupKind) bool {
		_, makesPods := tree.Makes[tree.MakerOf(kind)]
		return makesPods || kind == tree.PodKind.GroupKind()
	})
	if err != nil {
		return nil, err
	}
	var sources []LogSource
	found.Walk(func(n *tree.Node) {
		for _, c := range n.Containers {
			if r.options.container == "" || r.options.container == c.Name {
				sources = append(sources, LogSource{LogContainer: c, namespace: n.Namespace, Pod: n.Name, uid: string(n.UID)})
			}
		}
	})
	return sources, nil
}

// controllers finds the containers of Satchel's controllers.
func (r *logReader) controllers(ctx context.Context) ([]LogSource, error) {
	var sources []LogSource
	l := kit.Listing{Resource: podResource, Namespace: r.options.systemNamespace, Selector: "app.kubernetes.io/part-of=satchel", Whole: true, Limit: tree.MostScanned}
	_, err := r.Each(ctx, l, func(found kit.Sighting) {
		for _, c := range tree.LogContainers(found.Body) {
			sources = append(sources, LogSource{LogContainer: c, namespace: found.GetNamespace(), Pod: found.GetName(), uid: string(found.GetUID())})
		}
	})
	if err != nil {
		r.Unreadable("list", podResource, r.options.systemNamespace, err)
	}
	slices.SortFunc(sources, func(a, b LogSource) int { return strings.Compare(a.Pod, b.Pod) })
	return sources, context.Cause(ctx)
}

// AboutDeployment tells which lines of controllers are about a deployment or its source, in either encoding of their logs.
func AboutDeployment(d *v1alpha1.BundleDeployment) func(line string) bool {
	names := []string{d.Name}
	if name := effective.SourceName(d); name != "" && name != d.Name {
		names = append(names, name)
	}
	patterns := make([]string, 0, len(names))
	for _, name := range names {
		patterns = append(patterns, regexp.QuoteMeta(name))
	}
	name := regexp.MustCompile(`"name": ?"(` + strings.Join(patterns, "|") + `)"`)
	namespace := regexp.MustCompile(`"namespace": ?"` + regexp.QuoteMeta(d.Namespace) + `"`)
	return func(line string) bool {
		if at := strings.IndexByte(line, '{'); at >= 0 {
			var fields struct{ Name, Namespace string }
			if json.Unmarshal([]byte(line[at:]), &fields) == nil && fields.Name != "" {
				return fields.Namespace == d.Namespace && slices.Contains(names, fields.Name)
			}
		}
		return name.MatchString(line) && namespace.MatchString(line)
	}
}

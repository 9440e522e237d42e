// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// logSource is a container that logs are read from.
type logSource struct {
	logContainer

	namespace, pod, uid string
	since               time.Time // when it was read before; zero for never
	opened              bool      // there was a log
}

// logContainer is one of a Pod.
type logContainer struct {
	name     string
	restarts int64
	running  bool
}

// key tells a container from one of the same name in another Pod, and from itself before it was started again.
func (s logSource) key() string { return fmt.Sprintf("%s/%s/%d", s.uid, s.name, s.restarts) }

// podResource are the Pods.
var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// podsOf finds the containers of a deployment's Pods. It only considers objects of the inventory that may own Pods.
func (r *logReader) podsOf(ctx context.Context, t target) ([]logSource, error) {
	d, err := r.deployment(ctx, t)
	if err != nil {
		return nil, err
	}
	found, err := r.treeOf(ctx, d, func(kind schema.GroupKind) bool {
		_, makesPods := makes[makerOf(kind)]
		return makesPods || kind == podKind.GroupKind()
	})
	if err != nil {
		return nil, err
	}
	var sources []logSource
	found.walk(func(n *treeNode) {
		for _, c := range n.containers {
			if r.options.container == "" || r.options.container == c.name {
				sources = append(sources, logSource{logContainer: c, namespace: n.Namespace, pod: n.Name, uid: string(n.uid)})
			}
		}
	})
	return sources, nil
}

// controllers finds the containers of Satchel's controllers.
func (r *logReader) controllers(ctx context.Context) ([]logSource, error) {
	var sources []logSource
	l := listing{resource: podResource, namespace: r.options.systemNamespace, selector: "app.kubernetes.io/part-of=satchel", whole: true, limit: mostScanned}
	_, err := r.each(ctx, l, func(found sighting) {
		for _, c := range logContainers(found.body) {
			sources = append(sources, logSource{logContainer: c, namespace: found.GetNamespace(), pod: found.GetName(), uid: string(found.GetUID())})
		}
	})
	if err != nil {
		r.unreadable("list", podResource, r.options.systemNamespace, err)
	}
	slices.SortFunc(sources, func(a, b logSource) int { return strings.Compare(a.pod, b.pod) })
	return sources, context.Cause(ctx)
}

// logContainers are a Pod's containers, in the order in which they start.
func logContainers(body *unstructured.Unstructured) []logContainer {
	pod := new(corev1.Pod)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, pod) != nil {
		return nil
	}
	var found []logContainer
	add := func(name string, statuses []corev1.ContainerStatus) {
		c := logContainer{name: name}
		for _, status := range statuses {
			if status.Name == name {
				c.restarts, c.running = int64(status.RestartCount), status.State.Running != nil
			}
		}
		found = append(found, c)
	}
	for _, c := range pod.Spec.InitContainers {
		add(c.Name, pod.Status.InitContainerStatuses)
	}
	for _, c := range pod.Spec.Containers {
		add(c.Name, pod.Status.ContainerStatuses)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add(c.Name, pod.Status.EphemeralContainerStatuses)
	}
	return found
}

// aboutDeployment tells which lines of controllers are about a deployment or its source, in either encoding of their logs.
func aboutDeployment(d *v1alpha1.BundleDeployment) func(line string) bool {
	names := []string{d.Name}
	if name := d.SourceName(); name != "" && name != d.Name {
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

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/satchel-dev/satchel/internal/controller/shard"
)

// TestShards wants the instances of the overlay to share the objects without overlap, each Service to reach the Pods of one
// instance, and every deployment controller to load from every artifact server.
func TestShards(t *testing.T) {
	objects := render(t, "overlays/shards")
	deployments := decode[appsv1.Deployment](t, objects, "Deployment")
	if len(deployments) != 4 {
		t.Fatalf("%d Deployments, want two of each controller", len(deployments))
	}
	for _, s := range decode[corev1.Service](t, objects, "Service") {
		selected := slices.DeleteFunc(slices.Clone(deployments), func(d appsv1.Deployment) bool {
			return !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels))
		})
		if len(selected) != 1 {
			t.Errorf("the Service %s selects the Pods of %d instances, want one", s.Name, len(selected))
		}
		for _, d := range deployments {
			server := "--artifact-servers=http://" + s.Name + "." + systemNamespace + ".svc"
			if strings.HasPrefix(d.Name, "bundle-deployment-controller") && !slices.Contains(arguments(d), server) {
				t.Errorf("%s has no %s: %v", d.Name, server, arguments(d))
			}
		}
		if advertised := "--storage-adv-addr=" + s.Name + "." + systemNamespace + ".svc"; len(selected) == 1 && last(arguments(selected[0]), "--storage-adv-addr=") != advertised {
			t.Errorf("%s does not advertise itself: want %s in %v", selected[0].Name, advertised, arguments(selected[0]))
		}
	}
	for _, labelled := range []map[string]string{nil, {"sharding.fluxcd.io/key": "shard1"}} {
		if owners := ownersOf(t, deployments, labelled); owners != 2 {
			t.Errorf("%d instances reconcile objects with the labels %v, want one of each controller", owners, labelled)
		}
	}
}

// ownersOf counts the instances that reconcile objects with the given labels.
func ownersOf(t *testing.T, deployments []appsv1.Deployment, labelled map[string]string) int {
	t.Helper()
	owners := 0
	for _, d := range deployments {
		s, err := shard.Parse(strings.TrimPrefix(last(arguments(d), "--watch-label-selector="), "--watch-label-selector="))
		if err != nil {
			t.Fatal(err)
		}
		if s.Owns(&metav1.ObjectMeta{Labels: labelled}) {
			owners++
		}
	}
	return owners
}

func arguments(d appsv1.Deployment) []string { return d.Spec.Template.Spec.Containers[0].Args }

// last is the last argument with a prefix, which is the one that counts.
func last(arguments []string, prefix string) string {
	found := ""
	for _, argument := range arguments {
		if strings.HasPrefix(argument, prefix) {
			found = argument
		}
	}
	return found
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// RolloutController is the name of the controller of BundleRollouts, which is optional.
const RolloutController = "bundle-rollout-controller"

// rollouts checks BundleRollouts, where their kind is installed: its CRD, and that there is a controller.
func (e *Examiner) rollouts(ctx context.Context) {
	const check = "Rollouts"
	name := kit.Rollouts.Resource + "." + v1alpha1.GroupVersion.Group
	crd, err := e.One(ctx, kit.DefinitionsResource, "", name, true)
	switch {
	case apierrors.IsNotFound(err):
		return
	case err != nil:
		e.add(check, CheckUnknown, "", "%s cannot be read: %s", name, e.WhyNot(err))
		return
	}
	workloads, err := e.Installed(ctx, WorkloadsResource, PartOfSatchel)
	if err != nil {
		e.add(check, CheckUnknown, "", "the Deployments of the namespace %s cannot be listed: %s", e.Namespace, e.WhyNot(err))
		return
	}
	var problems []string
	state := CheckOK
	for _, p := range CRDProblems(crd.Body, reflect.TypeFor[v1alpha1.BundleRolloutSpec](), reflect.TypeFor[v1alpha1.BundleRolloutStatus]()) {
		problems = append(problems, name+" "+p.Text)
		if state != CheckFailed {
			state = p.State
		}
	}
	if !slices.ContainsFunc(workloads, func(w unstructured.Unstructured) bool { return isController(&w, RolloutController) }) {
		problems = append(problems, "there is no "+RolloutController+" in the namespace "+e.Namespace+", and BundleRollouts are not reconciled")
		if state == CheckOK {
			state = CheckWarning
		}
	}
	if len(problems) > 0 {
		e.add(check, state, "Run satchel install --with rollouts; where BundleRollouts are not wanted any more, delete their CRD.", "%s", strings.Join(problems, "; "))
		return
	}
	e.add(check, CheckOK, "", "the kind is served as this program knows it, and there is a controller")
	e.rolloutLeader(ctx)
}

// rolloutLeader checks that a process of the rollout controller leads.
func (e *Examiner) rolloutLeader(ctx context.Context) {
	leases, err := e.Installed(ctx, LeasesResource, "")
	if err != nil {
		return // the check of the leaders says so
	}
	for i := range leases {
		if strings.HasPrefix(leases[i].GetName(), RolloutController) {
			e.Leader(&leases[i])
		}
	}
}

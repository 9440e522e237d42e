// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/see"
	"github.com/satchel-dev/satchel/internal/view"
)

// situation is a deployment and its source in some state.
type situation struct {
	reason     string
	deployment *v1alpha1.BundleDeployment
	source     *v1alpha1.BundleSource
	upToDate   bool
	failed     string // the step that status points at
}

// operator makes a deployment one of an operator with webhooks.
func operator(d *v1alpha1.BundleDeployment) {
	end := ago(-600 * 24 * time.Hour)
	d.Status.Format, d.Status.Healthy.Package, d.Status.CertificateExpirationTime = "registry+v1", &v1alpha1.PackageStatus{Name: "gadget", Version: "1.4.0"}, &end
}

// situations are typical states of a deployment.
func situations() map[string]situation {
	return map[string]situation{
		"ready": {
			reason: "everything is in order", deployment: aDeployment(), source: aSource(), upToDate: true,
		},
		"ready-suspended": {
			reason: "the applied revision is healthy, and drift is not corrected", source: aSource(), upToDate: true,
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true }),
		},
		"ready-pinned": {
			reason: "a digest is not looked at again", upToDate: true, deployment: aDeployment(),
			source: aSource(func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].Image.Reference = "example.org/podinfo@" + digestA }),
		},
		"ready-several-sources": {
			reason: "all parts are listed", upToDate: true, deployment: aDeployment(), source: aSource(severalSources),
		},
		"ready-operator": {
			reason: "which version of which package, and when its certificates are renewed", source: aSource(), upToDate: true, deployment: aDeployment(operator),
		},
		"certificates-late": {
			reason: "renewing fails, and what to do", source: aSource(), upToDate: true,
			deployment: aDeployment(operator, func(d *v1alpha1.BundleDeployment) {
				end := ago(2 * time.Hour)
				d.Status.CertificateExpirationTime = &end
				d.Status.Warnings = []string{"certificates: the one in Secret demo/gadget-cert expires on 2026-05-04 10:00:00 and could not be renewed so far", "another one"}
			}),
		},
		"never-seen": {
			reason: "no controller runs", deployment: aDeployment(never),
		},
		"changed": {
			reason: "Ready is about the spec before", source: aSource(),
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) { d.Generation = 3 }),
		},
		"source-missing": {
			reason: "the reference leads nowhere", failed: v1alpha1.SourceReadyCondition,
			deployment: aDeployment(never, reference, with(
				no(v1alpha1.SourceReadyCondition, v1alpha1.ReasonSourceNotFound, `the BundleSource "podinfo" does not exist`),
				no(meta.ReadyCondition, v1alpha1.ReasonSourceNotFound, `the BundleSource "podinfo" does not exist`), retrying()), seen),
		},
		"source-fails": {
			reason: "the source's own words say more than: not ready", failed: v1alpha1.SourceReadyCondition,
			deployment: aDeployment(never, seen, with(
				no(v1alpha1.SourceReadyCondition, v1alpha1.ReasonSourceNotReady, "the source has published nothing yet"),
				no(meta.ReadyCondition, v1alpha1.ReasonSourceNotReady, "the source has published nothing yet"), retrying())),
			source: aSource(unpublished, failing(v1alpha1.ReasonNotFound, "image example.org/podinfo:v1.3.0: not found (404)")),
		},
		"source-fetching": {
			reason: "the first fetch takes its time",
			deployment: aDeployment(never, seen, with(
				no(v1alpha1.SourceReadyCondition, v1alpha1.ReasonSourceNotReady, "the source has published nothing yet"),
				condition(meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonSourceNotReady, "waiting for the source"), working())),
			source: aSource(unpublished, func(s *v1alpha1.BundleSource) {
				s.Status.Conditions = []metav1.Condition{
					condition(meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, "fetching"), working()}
			}),
		},
		"source-fails-later": {
			reason: "the applied revision keeps running, and the source fails", upToDate: true, failed: v1alpha1.SourceReadyCondition,
			deployment: aDeployment(with(no(v1alpha1.SourceReadyCondition, v1alpha1.ReasonUnreachable, "image example.org/podinfo:v1.3.0: unknown host"))),
			source:     aSource(failing(v1alpha1.ReasonUnreachable, "image example.org/podinfo:v1.3.0: unknown host")),
		},
		"source-and-health-fail": {
			reason: "the source is not what keeps it from being healthy", failed: v1alpha1.HealthyCondition,
			deployment: aDeployment(with(no(v1alpha1.SourceReadyCondition, v1alpha1.ReasonUnreachable, "image example.org/podinfo:v1.3.0: unknown host"),
				no(v1alpha1.HealthyCondition, v1alpha1.ReasonHealthFailed, "Deployment demo/podinfo: Pod podinfo-1: no image"),
				no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "Deployment demo/podinfo: Pod podinfo-1: no image"), retrying())),
			source: aSource(failing(v1alpha1.ReasonUnreachable, "image example.org/podinfo:v1.3.0: unknown host")),
		},
		"artifact-fails": {
			reason: "there is an artifact, and it cannot be loaded", source: aSource(), failed: v1alpha1.SourceReadyCondition,
			deployment: aDeployment(with(
				no(v1alpha1.SourceReadyCondition, v1alpha1.ReasonArtifactFailed, "loading the artifact: connection refused"),
				no(meta.ReadyCondition, v1alpha1.ReasonArtifactFailed, "loading the artifact: connection refused"), retrying())),
		},
		"account-missing": {
			reason: "a failure that belongs to no step", source: aSource(), failed: meta.ReadyCondition,
			deployment: aDeployment(first, without(v1alpha1.PlannedCondition, v1alpha1.AppliedCondition, v1alpha1.HealthyCondition), with(
				no(meta.ReadyCondition, v1alpha1.ReasonAccountNotFound, `the ServiceAccount "installer" does not exist in the namespace "demo"`), retrying())),
		},
		"dependency-waits": {
			reason: "waiting is no failure, and whom it waits for is said", source: aSource(),
			deployment: aDeployment(first, reference, without(v1alpha1.ConvertedCondition, v1alpha1.PlannedCondition, v1alpha1.AppliedCondition, v1alpha1.HealthyCondition), with(
				condition(meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonDependencyNotReady, waitsForTwo), working()), func(d *v1alpha1.BundleDeployment) {
				d.Spec.DependsOn = []v1alpha1.Dependency{{Name: "cert-manager"}, {Name: "database"}}
				d.Status.Format, d.Status.Plan, d.Status.Attempted.Revision = "", nil, ""
			}),
		},
		"dependency-waits-later": {
			reason: "drift of the applied revision is corrected while a new one waits", source: aSource(),
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) {
				d.Spec.DependsOn = []v1alpha1.Dependency{{Name: "cert-manager"}, {Name: "database"}}
				d.Status.Attempted.Revision, d.Status.Applied.Revision, d.Status.Healthy.Revision = revisionA, revisionA, revisionA
			}, with(condition(meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonDependencyNotReady,
				waitsForTwo+"\nrevision "+revisionA+" stays applied and is kept from drifting"), working())),
		},
		"conversion-fails": {
			reason: "the new revision is broken and the old one runs", source: aSource(), failed: v1alpha1.ConvertedCondition,
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) { d.Status.Applied.Revision = revisionA }, with(
				no(v1alpha1.ConvertedCondition, v1alpha1.ReasonConversionFailed, "manifests/a.yaml: no kind\nmanifests/b.yaml: not YAML"),
				no(meta.ReadyCondition, v1alpha1.ReasonConversionFailed, "manifests/a.yaml: no kind\nmanifests/b.yaml: not YAML"),
				condition(meta.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonConversionFailed, ""))),
		},
		"plan-refused": {
			reason: "all violations at once", source: aSource(), failed: v1alpha1.PlannedCondition,
			deployment: aDeployment(first, without(v1alpha1.AppliedCondition, v1alpha1.HealthyCondition), with(
				no(v1alpha1.PlannedCondition, v1alpha1.ReasonPlanRefused, "installer may not create deployments.apps in demo\nthe namespace shop does not exist"),
				no(meta.ReadyCondition, v1alpha1.ReasonPlanRefused, "2 obstacles"), retrying())),
		},
		"health-progressing": {
			reason: "not healthy yet is no failure", source: aSource(),
			deployment: aDeployment(with(
				no(v1alpha1.HealthyCondition, v1alpha1.ReasonHealthProgressing, "Deployment demo/podinfo: 0 of 2 replicas are available"),
				condition(meta.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonHealthProgressing, "Deployment demo/podinfo: 0 of 2 replicas are available"),
				working())),
		},
		"rolled-back": {
			reason: "why, what runs, and what has to happen", source: aSource(), failed: meta.ReadyCondition,
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) {
				d.Status.Rejected.Revision, d.Status.Applied.Revision, d.Status.Attempted.Revision = revisionB, revisionA, revisionA
			}, with(
				no(meta.ReadyCondition, v1alpha1.ReasonRevisionRejected, "revision "+revisionB+" was rejected: HealthFailed: Deployment demo/podinfo: Pod podinfo-1: no image\nrevision "+revisionA+" is applied and is kept from drifting"),
				condition(meta.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonRevisionRejected, "see Ready"))),
		},
		"health-failed": {
			reason: "the cause down to the Pod", source: aSource(), failed: v1alpha1.HealthyCondition,
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) { d.Status.Objects.Unhealthy, d.Status.Objects.Skipped = 1, 2 }, with(
				no(v1alpha1.HealthyCondition, v1alpha1.ReasonHealthFailed, "Deployment demo/podinfo: Pod podinfo-1: container app: the image cannot be pulled"),
				no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "Deployment demo/podinfo is not healthy"), retrying())),
		},
		"approval-required": {
			reason: "the applied revision keeps running, and which command approves", source: aSource(), upToDate: true,
			deployment: aDeployment(proposed(v1alpha1.ReasonApprovalRequired, "the plan "+digestA+" for revision v2 waits for an approval: it deletes 2 objects.\nSee it with satchel plan podinfo; approve it with satchel approve podinfo")),
		},
		"approval-first": {
			reason: "nothing is installed before the approval", source: aSource(), failed: v1alpha1.PlannedCondition,
			deployment: aDeployment(first, without(v1alpha1.AppliedCondition, v1alpha1.HealthyCondition), proposed(v1alpha1.ReasonApprovalRequired, "the plan waits for an approval"), with(
				no(v1alpha1.PlannedCondition, v1alpha1.ReasonApprovalPending, "the plan waits for an approval"),
				no(meta.ReadyCondition, v1alpha1.ReasonApprovalPending, "the plan waits for an approval"))),
		},
		"approval-denied": {
			reason: "who refused it, and why", source: aSource(), upToDate: true,
			deployment: aDeployment(proposed(v1alpha1.ReasonApprovalDenied, "BundleApproval no-thanks denies the plan: not before Christmas")),
		},
		"approval-prune": {
			reason: "deletions are held", source: aSource(), upToDate: true,
			deployment: aDeployment(proposed(v1alpha1.ReasonPruneHeld, "17 of 20 objects left the bundle "+steering+"\nsecond"+steering)),
		},
		"deleting": {
			reason: "it goes", source: aSource(),
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) { at := ago(0); d.DeletionTimestamp = &at }, with(
				no(meta.ReadyCondition, v1alpha1.ReasonRemoving, "removing 5 objects"), working())),
		},
		"removal-blocked": {
			reason: "what it waits for, until when, and the way out", source: aSource(), failed: meta.ReadyCondition,
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) { at := ago(time.Minute); d.DeletionTimestamp = &at }, with(
				condition(v1alpha1.RemovalBlockedCondition, metav1.ConditionTrue, v1alpha1.ReasonAccountNotFound, blockedRemoval),
				no(meta.ReadyCondition, v1alpha1.ReasonAccountNotFound, "removing 2 objects: "+blockedRemoval+"\nConfigMap demo/a: is forbidden"), retrying())),
		},
		"hostile": {
			reason: "a message must not steer the terminal", source: aSource(), failed: v1alpha1.ConvertedCondition,
			deployment: aDeployment(func(d *v1alpha1.BundleDeployment) {
				d.Status.Warnings = []string{"\x1b[2J\x1b]0;owned\x07"}
				d.Status.Attempted.Revision = "\x1b[31mv1@" + digestA
			}, with(no(v1alpha1.ConvertedCondition, v1alpha1.ReasonConversionFailed, "\x1b[2Jgone\u202e"),
				no(meta.ReadyCondition, v1alpha1.ReasonConversionFailed, "\x1b[2Jgone\u202e"), retrying())),
		},
	}
}

// waitsForTwo is the controller's message about two dependencies.
const waitsForTwo = "waiting for spec.dependsOn: bundledeployment demo/cert-manager is not ready: HealthProgressing\n" +
	"bundledeployment demo/database does not exist: create it, or correct spec.dependsOn"

// proposed gives a deployment a plan that waits for approval.
func proposed(reason, message string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		d.Status.Plan.Digest = digestA
		with(condition(v1alpha1.ApprovalPendingCondition, metav1.ConditionTrue, reason, message))(d)
	}
}

func seen(d *v1alpha1.BundleDeployment) { d.Status.ObservedGeneration = 2 }

func unpublished(s *v1alpha1.BundleSource) { s.Status.Artifact, s.Status.Resolved = nil, nil }

func failing(reason, message string) func(*v1alpha1.BundleSource) {
	return func(s *v1alpha1.BundleSource) {
		s.Status.Conditions = []metav1.Condition{no(meta.ReadyCondition, reason, message), retrying()}
	}
}

func severalSources(s *v1alpha1.BundleSource) {
	s.Spec.Sources = []v1alpha1.Source{
		{Destination: "base", Git: &v1alpha1.GitSource{URL: "https://example.org/r.git", Ref: &v1alpha1.GitRef{Branch: "main"}}},
		{Destination: "crds", HTTP: &v1alpha1.HTTPSource{URL: "https://example.org/crds.tgz", Digest: digestB}},
		{Destination: "extra", ConfigMap: &v1alpha1.LocalReference{Name: "extra"}},
	}
	s.Status.Resolved = []v1alpha1.ResolvedSource{
		{Destination: "base", Reference: "main", Digest: "sha1:0123456789abcdef0123456789abcdef01234567"},
		{Destination: "crds", Digest: digestB}, {Destination: "extra", Digest: digestA},
	}
}

const blockedRemoval = "serviceaccount demo/installer does not exist, and bindings that are left do not suffice; the removal has failed since 2026-05-04T10:00:00Z. It is abandoned at 2026-05-04T10:10:00Z"

func TestStatus(t *testing.T) {
	for name, tc := range situations() {
		t.Run(name, func(t *testing.T) {
			p := view.NewPipeline(tc.deployment, tc.source, "satchel", noon)
			golden(t, "status/"+name, see.PrintPipeline(p, printer.Style{}, noon))
			if odd := hiddenIn(see.PrintPipeline(p, printer.Style{}, noon)); odd != "" {
				t.Error(odd)
			}
			if p.UpToDate != tc.upToDate {
				t.Errorf("%s: up to date is %v, want %v", tc.reason, p.UpToDate, tc.upToDate)
			}
			got := ""
			if p.Problem != nil {
				got = p.Problem.Step
			}
			if got != tc.failed {
				t.Errorf("%s: the first failing step is %q, want %q", tc.reason, got, tc.failed)
			}
		})
	}
}

func TestStatusJSON(t *testing.T) {
	tc := situations()["plan-refused"]
	for _, format := range []printer.Output{printer.OutputJSON, printer.OutputYAML} {
		var out bytes.Buffer
		if err := printer.PrintValue(&out, format, view.NewPipeline(tc.deployment, tc.source, "satchel", noon)); err != nil {
			t.Fatal(err)
		}
		golden(t, "status/plan-refused-"+string(format), out.String())
	}
}

// TestStatusColours checks that colours are written to terminals only, and that they change nothing else.
func TestStatusColours(t *testing.T) {
	tc := situations()["plan-refused"]
	p := view.NewPipeline(tc.deployment, tc.source, "satchel", noon)
	coloured := see.PrintPipeline(p, printer.Style{Enabled: true}, noon)
	golden(t, "status/plan-refused-colour", coloured)
	for _, code := range []printer.Color{printer.Red, printer.Green, printer.Yellow, printer.Bold, printer.Faint, "\x1b[0m"} {
		coloured = strings.ReplaceAll(coloured, string(code), "")
	}
	if coloured != see.PrintPipeline(p, printer.Style{}, noon) {
		t.Error("colours change the text")
	}
}

// TestEveryFailureHasAHint checks that each reason of the API has a hint.
func TestEveryFailureHasAHint(t *testing.T) {
	good := []string{"ReasonSucceeded", "ReasonProgressing", "ReasonProgressingWithRetry", "ReasonSuspended",
		"ReasonHealthProgressing", "ReasonRollingBack", "ReasonRemoving"}
	parsed, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || slices.Contains(good, spec.Names[0].Name) {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		count++
		if view.HintFor(value) == "" {
			t.Errorf("%s has no hint: add one to hints.go", spec.Names[0].Name)
		}
		return true
	})
	if count != len(view.Hints) {
		t.Errorf("%d hints for %d reasons: remove those that no reason has", len(view.Hints), count)
	}
}

// TestStatusOfASource shows what a source resolved to, what is wrong, and what installs from it.
func TestStatusOfASource(t *testing.T) {
	suspended := func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true }
	for name, tc := range map[string]struct {
		source   *v1alpha1.BundleSource
		users    []string
		upToDate bool
	}{
		"ready":     {aSource(), []string{"other", "podinfo"}, true},
		"several":   {aSource(severalSources), nil, true},
		"failed":    {aSource(unpublished, failing(v1alpha1.ReasonNotFound, "image example.org/podinfo:v1.3.0: not found (404)\nsecond"+steering)), nil, false},
		"suspended": {aSource(suspended), nil, true},
		"new":       {aSource(unpublished, func(s *v1alpha1.BundleSource) { s.Status = v1alpha1.BundleSourceStatus{} }), nil, false},
	} {
		v := view.NewSourceStatus(tc.source, tc.users)
		text := see.PrintSource(v, printer.Style{}, noon)
		golden(t, "status/bundlesource-"+name, text)
		if odd := hiddenIn(text); odd != "" || v.UpToDate != tc.upToDate {
			t.Errorf("%s: %s %v", name, odd, v.UpToDate)
		}
	}
	c := newTestCluster(t)
	c.Create(aSource())
	c.Create(aDeployment(reference))
	c.Want(c.Satchel("status", "source/podinfo"), kit.ExitOK, "BundleSource "+c.Namespace+"/podinfo: Ready", "used by BundleDeployment podinfo")
	c.Want(c.Satchel("status", "source", "podinfo", "-o", "json"), kit.ExitOK, `"usedBy": [`)
	c.Want(c.Satchel("status", "source/none"), kit.ExitError, `there is no BundleSource "none"`)
}

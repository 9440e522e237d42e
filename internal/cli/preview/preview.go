// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/clusterprofile"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch/links"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
	"github.com/satchel-dev/satchel/internal/spec/values"
	"github.com/satchel-dev/satchel/internal/view"
)

// previewOptions are the flags of plan.
type previewOptions struct {
	bundle.OpenOptions

	output          printer.Output
	image, revision string
	fields          bool
	ignoreSnippet   bool
	files           []string // of -f
	strict          bool     // missing permissions are granted by name
}

// Previewer computes what the controller would do, with the same functions and with the user's permissions.
type Previewer struct {
	app        *kit.App
	options    previewOptions
	cluster    *kit.Cluster
	Config     *rest.Config
	Deployment *v1alpha1.BundleDeployment
	User       *tenant.Client // on the cluster of the flags
	Target     *tenant.Client // on that of the objects: the same, or the one of spec.target

	declared  *bundle.Declared               // of the files of -f; nil without
	listed    *v1alpha1.BundleDeploymentList // of the namespace, once it was listed
	owner     inventory.Owner
	previous  inventory.Inventory
	files     leftout.Bundle          // of what is previewed
	origins   map[inventory.ID]string // of its objects
	scrub     *values.Scrubber        // removes values of Secrets from messages
	made      plan.Plan
	forecasts map[inventory.ID]dryrun.Forecast
	Out       *Preview
}

// note adds a note about what the preview used, or could not check.
func (p *Previewer) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		p.Out.Notes = append(p.Out.Notes, text)
	}
}

// Open reads a deployment, and connects to the cluster of its objects.
func Open(ctx context.Context, a *kit.App, t kit.Target) (*Previewer, error) {
	return open(ctx, a, previewOptions{}, t)
}

func open(ctx context.Context, a *kit.App, o previewOptions, t kit.Target) (*Previewer, error) {
	c, err := a.Connect()
	if err != nil {
		return nil, err
	}
	p := &Previewer{app: a, options: o, cluster: c, Out: &Preview{}}
	if len(o.files) > 0 {
		err = p.declare(ctx, t)
	} else {
		p.Deployment, err = c.Deployment(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	if p.Config, err = a.RestConfig(); err != nil {
		return nil, err
	}
	if p.User, err = tenant.ForUser(p.Config, tenant.Options{}); err != nil {
		return nil, err
	}
	p.owner = inventory.Owner{Namespace: p.Deployment.Namespace, Name: p.Deployment.Name}
	if p.previous, err = inventory.Decode(p.Deployment.Status.Inventory); err != nil {
		return nil, fmt.Errorf("the status of %s %s cannot be read: %w", v1alpha1.BundleDeploymentKind, p.Deployment.Name, err)
	}
	p.Out.begin(p.Deployment, o)
	return p, p.reach(ctx)
}

// preview previews a deployment.
func preview(ctx context.Context, a *kit.App, o previewOptions, t kit.Target) (*Preview, error) {
	p, err := open(ctx, a, o, t)
	if err != nil {
		return nil, err
	}
	result, err := p.convert(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.plan(ctx, result); err != nil {
		return nil, p.scrub.Error(err)
	}
	if err := p.preflight(ctx); err != nil {
		return nil, p.scrub.Error(err)
	}
	p.report()
	p.Out.Scrub(p.scrub)
	return p.Out, nil
}

// Current previews the current artifact of the source.
func Current(ctx context.Context, a *kit.App, t kit.Target) (*Preview, error) {
	return preview(ctx, a, previewOptions{}, t)
}

// Revision previews a revision of the history.
func Revision(ctx context.Context, a *kit.App, t kit.Target, revision string) (*Preview, error) {
	return preview(ctx, a, previewOptions{revision: revision}, t)
}

// Previous are the objects that are applied.
func (p *Previewer) Previous() inventory.Inventory { return p.previous }

// Planned converts the current artifact of the source.
func (p *Previewer) Planned(ctx context.Context) (convert.Result, error) { return p.convert(ctx) }

// Applied converts the artifact of the applied revision; nil if it is the current one of the source, or nothing is applied.
// Planned comes before.
func (p *Previewer) Applied(ctx context.Context) (*convert.Result, error) {
	applied := p.Deployment.Status.Applied.Revision
	if applied == "" || view.ContentOf(applied) == view.ContentOf(p.Out.Revision) {
		return nil, nil //nolint:nilnil // there is no other revision
	}
	earlier := *p
	earlier.options.revision = applied
	result, err := earlier.convert(ctx)
	return &result, err
}

// convert reads the bundle and converts it as the spec says.
func (p *Previewer) convert(ctx context.Context) (result convert.Result, err error) {
	b, err := p.bundle(ctx)
	if err != nil {
		return convert.Result{}, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	fmt.Fprintf(p.app.Streams.ErrOut, "Reading %s.\n", view.Inline(view.ShortRevision(b.From)))
	p.Out.Bundle = b.From
	read, err := p.inputs(ctx, b.Files)
	if p.scrub = read.Scrub; err != nil {
		return convert.Result{}, err
	}
	result, err = p.app.Converted(ctx, b.Files, spec.Conversion(p.Deployment, read.Given, p.options.Limits))
	p.app.Note(b.Notes())
	if err != nil {
		return convert.Result{}, p.scrub.Error(kit.Refused(err, false))
	}
	p.Out.Format = string(result.Format)
	p.files = leftout.Bundle{Format: result.Format, Root: result.Root, LeftOut: links.Of(b.Files)}
	p.origins = spec.Origins(result)
	p.Out.Warnings = slices.Concat(result.Warnings, links.Warnings(p.files.LeftOut))
	if p.Out.secret = spec.FromSecrets(read.Needed, read.Contents); p.Out.secret {
		return result, nil
	}
	p.Out.Content, err = digest.Content(slices.Concat(result.Objects, plan.Rendered(spec.Hooks(result))), effective.InstallNamespace(p.Deployment))
	return result, err
}

// reach connects to the target cluster, and checks that it is the one with the applied objects.
func (p *Previewer) reach(ctx context.Context) error {
	p.Target = p.User
	if ref := effective.RemoteCluster(p.Deployment.Spec.Target.ClusterReference); ref != nil {
		remote, err := p.remote(ctx, ref)
		if err != nil {
			return err
		}
		p.Target = remote
	}
	identity, err := p.Target.Target(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && p.previous.Target == "":
		return nil // it matters only where packages of other deployments do
	case err != nil:
		p.note("whether this is the cluster that the objects are on was not checked: %v", err)
	case p.previous.Target == "":
		p.previous.Target = identity // so that what others have installed there is found
	case identity != p.previous.Target:
		return fmt.Errorf("the objects of %s are on another cluster than this one, where the controller would change nothing: choose that cluster with --context, or see satchel status %s",
			p.Deployment.Name, p.Deployment.Name)
	}
	return nil
}

// remote is a client for the cluster of a kubeconfig that the user may read. Its user is that of the kubeconfig.
func (p *Previewer) remote(ctx context.Context, ref *v1alpha1.ClusterReference) (*tenant.Client, error) {
	named := fmt.Sprintf("%s in the namespace %s, which leads to the cluster", spec.KubeConfigHolder(ref), p.Deployment.Namespace)
	data, err := p.kubeconfig(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", named, err)
	}
	parsed, err := tenant.ParseKubeconfig(data)
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", named, err)
	}
	client, err := tenant.NewRemotes((&net.Dialer{}).DialContext, tenant.Options{}).
		Client(parsed, p.Deployment.Namespace, p.Deployment.Spec.Target.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	p.note("on the other cluster, objects were read and dry runs made as %s, not as you", client.Identity())
	return client.For(p.Deployment.Name), nil
}

// kubeconfig reads what a reference names.
func (p *Previewer) kubeconfig(ctx context.Context, ref *v1alpha1.ClusterReference) ([]byte, error) {
	if ref.ClusterProfileRef != nil {
		return clusterprofile.Read(ctx, p.User, p.Deployment.Namespace, ref.ClusterProfileRef)
	}
	secret, err := p.User.Get(ctx, tenant.Ref{Resource: kit.SecretResource, Namespace: p.Deployment.Namespace, Name: ref.KubeConfig.SecretRef.Name})
	if err != nil {
		return nil, err
	}
	return kubeconfigIn(secret, ref.KubeConfig.SecretRef.Key)
}

// kubeconfigIn finds the kubeconfig in a Secret.
func kubeconfigIn(secret *unstructured.Unstructured, key string) ([]byte, error) {
	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for _, name := range []string{key, "value", "value.yaml"} {
		if text, found := data[name]; found && (key == "" || name == key) {
			return base64.StdEncoding.DecodeString(text)
		}
	}
	return nil, fmt.Errorf("it has no key %q", cmp.Or(key, "value"))
}

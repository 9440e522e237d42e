// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/kustomize"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/worker/child"
)

// Conversion is a bundle to convert.
type Conversion struct {
	Files   Files
	Options convert.Options
	// Capabilities asks the cluster for its capabilities, if the bundle is a chart. Nil: the options contain them. It
	// also returns warnings.
	Capabilities func(context.Context) (helm.Capabilities, []string, error)
}

// Converted is the result of a conversion. Only Result decodes its objects.
type Converted struct {
	// Values is how many fields, list items and scalars the objects have.
	Values int64
	// Content is the digest of the objects and hooks: see digest.Content.
	Content string
	// Capabilities that were asked for; nil for none. Warnings are those of Conversion.Capabilities.
	Capabilities *helm.Capabilities
	Warnings     []string

	answer convertAnswer
}

type convertRequest struct {
	Index   []packed.Entry
	Options convert.Options
	// Ask: a chart is not converted, since its capabilities are not known yet.
	Ask bool
}

type convertAnswer struct {
	Refused refusal
	// Asks is the only answer for a chart without known capabilities.
	Asks    bool
	Values  int64
	Content string
	Result  resultHead
	Objects cbor.RawMessage
}

// resultHead is convert.Result without its objects.
type resultHead struct {
	Format             convert.Format
	Hooks              []hookHead
	Ranks              []int
	Origins            []string
	Root               string
	Undecided          []int
	Warnings           []string
	RequiredNamespaces []string
	Certificates       []convert.Certificate
	Requirements       []convert.Requirement
	Package            convert.Package
	Version            string
}

type hookHead struct {
	Events         []string
	Weight         int
	DeletePolicies []string
}

// Convert converts a bundle in a worker process, on the CPU budget of a namespace. Problems of the bundle are a
// *convert.Error, as convert.Convert returns it; other errors are those of worker.Pool.Run and of Capabilities.
func Convert(ctx context.Context, runner Runner, namespace string, c Conversion) (*Converted, error) {
	request := convertRequest{Index: c.Files.Index, Options: c.Options, Ask: c.Capabilities != nil}
	converted := &Converted{}
	err := Run(ctx, runner, namespace, convertKind, c.Files.File, request, &converted.answer)
	if err == nil && converted.answer.Asks {
		var asked helm.Capabilities
		if asked, converted.Warnings, err = c.Capabilities(ctx); err != nil {
			return nil, err
		}
		converted.Capabilities, request.Options.Helm.Capabilities = &asked, asked
		request.Ask, converted.answer = false, convertAnswer{}
		err = Run(ctx, runner, namespace, convertKind, c.Files.File, request, &converted.answer)
	}
	if err == nil {
		err = converted.answer.Refused.err()
	}
	if err != nil {
		return nil, err
	}
	converted.Values, converted.Content = converted.answer.Values, converted.answer.Content
	return converted, nil
}

// Result decodes the objects. It can be called once.
func (c *Converted) Result() (convert.Result, error) {
	head := c.answer.Result
	var objects []map[string]any
	if err := decode(c.answer.Objects, &objects); err != nil {
		return convert.Result{}, err
	}
	c.answer.Objects = nil
	if len(objects) < len(head.Hooks) {
		return convert.Result{}, fmt.Errorf("a worker process answered with %d objects, of which %d are hooks", len(objects), len(head.Hooks))
	}
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		all = append(all, &unstructured.Unstructured{Object: object})
	}
	first := len(all) - len(head.Hooks)
	result := convert.Result{
		Format: head.Format, Objects: all[:first:first], Ranks: head.Ranks, Origins: head.Origins, Root: head.Root, Warnings: head.Warnings, RequiredNamespaces: head.RequiredNamespaces,
		Certificates: head.Certificates, Requirements: head.Requirements, Package: head.Package, Version: head.Version,
	}
	for i, hook := range head.Hooks {
		result.Hooks = append(result.Hooks, convert.Hook{
			Object: all[first+i], Events: hook.Events, Weight: hook.Weight, DeletePolicies: hook.DeletePolicies,
		})
	}
	for _, index := range head.Undecided {
		if index < 0 || index >= len(all) {
			return convert.Result{}, fmt.Errorf("a worker process answered with an object %d of %d", index, len(all))
		}
		result.Undecided = append(result.Undecided, all[index])
	}
	return result, nil
}

// convertBundle is the job.
func convertBundle(in child.Input) ([]byte, error) {
	return Handle(in, func(request convertRequest) (convertAnswer, error) {
		kustomize.Reset()
		files, err := packed.New(in.File, request.Index)
		if err != nil {
			return convertAnswer{}, err
		}
		if request.Ask {
			if asks := isChart(files, request.Options); asks {
				return convertAnswer{Asks: true}, nil
			}
		}
		result, err := convert.Convert(files, request.Options)
		if err != nil {
			problems, err := refused(err)
			return convertAnswer{Refused: problems}, err
		}
		return answerOf(result, request.Options.InstallNamespace)
	})
}

// isChart tells whether a bundle is a chart; its conversion reports problems.
func isChart(files fs.FS, o convert.Options) bool {
	_, format, err := convert.Enter(files, o)
	return err == nil && format == convert.Helm
}

func answerOf(result convert.Result, installNamespace string) (convertAnswer, error) {
	answer := convertAnswer{Result: resultHead{
		Format: result.Format, Ranks: result.Ranks, Origins: result.Origins, Root: result.Root, Warnings: result.Warnings, RequiredNamespaces: result.RequiredNamespaces,
		Certificates: result.Certificates, Requirements: result.Requirements, Package: result.Package, Version: result.Version,
	}}
	all := result.Objects
	for _, hook := range result.Hooks {
		all = append(all, hook.Object)
		answer.Result.Hooks = append(answer.Result.Hooks, hookHead{Events: hook.Events, Weight: hook.Weight, DeletePolicies: hook.DeletePolicies})
	}
	position := make(map[*unstructured.Unstructured]int, len(all))
	bare := make([]map[string]any, 0, len(all))
	for i, object := range all {
		position[object] = i
		bare = append(bare, object.Object)
		answer.Values += Values(object.Object)
	}
	for _, object := range result.Undecided {
		answer.Result.Undecided = append(answer.Result.Undecided, position[object])
	}
	var both errgroup.Group // a worker process has two processors
	both.Go(func() (err error) {
		answer.Content, err = digest.Content(contentOf(result), installNamespace)
		return err
	})
	both.Go(func() (err error) {
		answer.Objects, err = encoding.Marshal(bare)
		return err
	})
	if err := both.Wait(); err != nil {
		return convertAnswer{}, err
	}
	return answer, nil
}

// contentOf are the objects of a plan, for their digest.
func contentOf(result convert.Result) []*unstructured.Unstructured {
	all := append([]*unstructured.Unstructured(nil), result.Objects...)
	return append(all, plan.Rendered(spec.Hooks(result))...)
}

// Values counts a value and all values that it contains.
func Values(value any) int64 {
	count := int64(1)
	switch typed := value.(type) {
	case map[string]any:
		for _, field := range typed {
			count += Values(field)
		}
	case []any:
		for _, item := range typed {
			count += Values(item)
		}
	}
	return count
}

// Size is the size of the encoded objects in bytes.
func (c *Converted) Size() int64 { return int64(len(c.answer.Objects)) }

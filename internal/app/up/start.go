//go:build unix

package up

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/credence-id/credence/internal/app/up/cluster"
	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/app/up/process"
	"github.com/credence-id/credence/internal/app/up/progress"
	"github.com/credence-id/credence/internal/minors"
	"github.com/credence-id/credence/internal/pki"
)

// starter brings an installation to the point where a token can be issued and verified.
type starter struct {
	*run
	// known is the cluster's authority as it was before the start; nil: this is the first start.
	known []byte
	web   *http.Client
	admin *cluster.Client
}

// start is the order of everything. A first start is a chain: the cluster makes the authority, the authority certifies
// the components, the components run. Later ones overlap what does not depend on each other.
func (s *starter) start(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	err := s.startEarly(groupCtx, group)
	if err != nil {
		s.fail(err)
	}
	if err := errors.Join(group.Wait(), err); err != nil {
		return rootCause(ctx, err)
	}
	if err := s.register(ctx); err != nil {
		return rootCause(ctx, err)
	}
	if err := s.prove(ctx); err != nil {
		return rootCause(ctx, err)
	}
	return s.writeTimes()
}

// startEarly starts the cluster, and with it what needs no cluster; the rest follows once the cluster is ready.
func (s *starter) startEarly(ctx context.Context, group *errgroup.Group) error {
	authority, err := s.authority(s.now())
	if err != nil {
		return err
	}
	if err := s.writeAdmission(); err != nil {
		return err
	}
	isReady := map[string]func(string){}
	for _, c := range inPhase(ground) {
		if isReady[c.name], err = s.launch(c); err != nil {
			return err
		}
	}
	if authority != nil {
		s.known = authority.PEM()
		if err := s.certify(authority); err != nil {
			return err
		}
		if err := s.bring(ctx, group, inPhase(byItself)...); err != nil {
			return err
		}
	}
	for _, c := range inPhase(ground) {
		group.Go(func() error {
			if err := s.awaitGround(ctx, c); err != nil {
				return err
			}
			isReady[c.name]("ready at " + s.clusterURL())
			return s.startInCluster(ctx, group)
		})
	}
	return nil
}

// startInCluster runs once the cluster is ready.
func (s *starter) startInCluster(ctx context.Context, group *errgroup.Group) error {
	authority, err := s.authority(s.now())
	if err != nil {
		return err
	}
	if authority == nil {
		return fmt.Errorf("the cluster is ready, but its authority is not in %s", s.authorityFile())
	}
	rest := inPhase(inCluster)
	switch {
	case s.known == nil:
		if err := s.certify(authority); err != nil {
			return err
		}
		rest = append(rest, inPhase(byItself)...)
	case !bytes.Equal(s.known, authority.PEM()):
		return errors.New("the cluster has made itself a new certificate authority: run credence up once more")
	}
	if err := s.writeAdminConfig(); err != nil {
		return err
	}
	if s.admin, err = cluster.New(s.dir.Kubeconfig()); err != nil {
		return err
	}
	s.admin.Reasons = s.tracker.Reasons
	if s.node {
		group.Go(func() error { return s.awaitNode(ctx) })
	}
	return s.applyAndBring(ctx, group, rest)
}

// applyAndBring applies the manifests before the components start that need them, or beside if nothing has changed.
func (s *starter) applyAndBring(ctx context.Context, group *errgroup.Group, rest []component) error {
	minor, err := s.admin.Minor(ctx)
	if err != nil {
		return err
	}
	known := minors.All()
	if err := known.Check(minor); err != nil {
		return err
	}
	manifests, err := s.loadManifests(minor)
	if err != nil {
		return err
	}
	if manifests.applied {
		group.Go(func() error { return s.apply(ctx, manifests) })
	} else if err := s.apply(ctx, manifests); err != nil {
		return err
	}
	return s.bring(ctx, group, rest...)
}

// bring starts components and waits in group for each to be ready.
func (s *starter) bring(ctx context.Context, group *errgroup.Group, all ...component) error {
	for _, c := range all {
		ready, err := s.launch(c)
		if err != nil {
			return err
		}
		group.Go(func() error {
			if err := s.awaitReady(ctx, s.web, c); err != nil {
				return err
			}
			ready("ready")
			return nil
		})
	}
	return nil
}

func (s *starter) launch(c component) (ready func(string), err error) {
	ready = s.tracker.Begin(c.name, "starting "+c.program)
	return ready, s.supervisor.Start(process.Spec{
		Name: c.name, Path: s.programs[c.program], Args: append(c.arguments(s.installation), s.extra[c.name]...), Folder: string(s.dir), LogFile: s.dir.Log(c.name),
	})
}

// awaitGround waits for the cluster, whose authority and admin kubeconfig appear only as it starts for the first time.
func (s *starter) awaitGround(ctx context.Context, c component) error {
	var trusted []byte
	var client *http.Client
	return s.explain(c, poll(ctx, startLimit, s.telling(c, func(ctx context.Context) error {
		certificate, err := os.ReadFile(s.authorityFile())
		if err != nil {
			return err
		}
		// A client of its own for each question would greet the cluster anew each time.
		if !bytes.Equal(certificate, trusted) {
			if client, err = webClient(certificate); err != nil {
				return err
			}
			trusted = certificate
		}
		if err := ask(ctx, client, s.readyURL(c)); err != nil {
			return err
		}
		_, err = os.Stat(s.clusterAdminConfig())
		return err
	})))
}

// telling shows why a component is waited for.
func (s *starter) telling(c component, ask func(context.Context) error) func(context.Context) error {
	reason := s.tracker.Reasons(c.name)
	return func(ctx context.Context) error {
		err := ask(ctx)
		if err != nil {
			reason(err)
		}
		return err
	}
}

func (s *starter) awaitReady(ctx context.Context, client *http.Client, c component) error {
	return s.explain(c, poll(ctx, startLimit, s.telling(c, func(ctx context.Context) error { return ask(ctx, client, s.readyURL(c)) })))
}

func (s *starter) explain(c component, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s did not become ready: %w, log file %s", c.name, err, s.dir.Log(c.name))
}

func (s *starter) certify(authority *pki.Authority) error {
	end := s.tracker.Begin("certificates", "checking")
	made, err := s.issueCertificates(authority, s.now())
	if err != nil {
		return err
	}
	if s.web, err = webClient(authority.PEM()); err != nil {
		return err
	}
	if made == 0 {
		end("all still fit")
	} else {
		end(fmt.Sprintf("%d made", made))
	}
	return nil
}

// register makes the cluster serve what the aggregated API server has, now that it can be reached.
func (s *starter) register(ctx context.Context) error {
	end := s.tracker.Begin("aggregation", "registering the API groups with the cluster")
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.registerOnce(limited); err != nil {
		return err
	}
	end("the cluster serves authentication.gardener.cloud and identity.credence.dev")
	return nil
}

func (s *starter) registerOnce(ctx context.Context) error {
	certificate, err := os.ReadFile(s.dir.CAFile())
	if err != nil {
		return fmt.Errorf("read the certificate authority: %w", err)
	}
	if err := s.admin.Register(ctx, cluster.Registration{Port: s.config.Port + apiserverPort, CA: certificate}, s.now()); err != nil {
		return err
	}
	return s.admin.WaitAvailable(ctx)
}

// prove ends a start: a token is issued, and verified as a stranger would.
func (s *starter) prove(ctx context.Context) error {
	end := s.tracker.Begin("self-check", "issuing a token and verifying it through discovery")
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	signing, err := s.admin.WaitKeys(limited)
	if err != nil {
		return err
	}
	err = s.admin.Prove(limited, cluster.Proof{Issuer: s.config.Issuer, Client: s.web, Now: s.now})
	switch {
	case errors.Is(err, cluster.ErrNoSigningKey):
		end("no token is issued: a key was revoked and no spare may sign yet, see credence keys list (" + signing + ")")
		return nil
	case err != nil:
		return err
	}
	end("a token was issued and verified")
	return nil
}

// recover waits until a component that was started again is ready, and has the cluster look at it at once.
func (s *starter) recover(ctx context.Context, name string) {
	for _, c := range components {
		if c.name != name {
			continue
		}
		if err := s.awaitReady(ctx, s.web, c); err != nil {
			if ctx.Err() == nil {
				s.tracker.Note("%v", err)
			}
			return
		}
		limited, cancel := context.WithTimeout(ctx, startLimit)
		defer cancel()
		if err := s.registerOnce(limited); err != nil {
			if ctx.Err() == nil {
				s.tracker.Note("%s is ready again, but the cluster does not serve it: %v", name, err)
			}
			return
		}
		s.tracker.Note("%s is ready again", name)
	}
}

// startup is what startup.json has of the last start.
type startup struct {
	// Kind is cold (nothing was there) or warm.
	Kind    string          `json:"kind"`
	Seconds float64         `json:"seconds"`
	Parts   []progress.Part `json:"parts"`
}

func (s *starter) writeTimes() error {
	times := startup{Kind: "warm", Seconds: s.tracker.Elapsed().Seconds(), Parts: s.tracker.Parts()}
	if s.known == nil {
		times.Kind = "cold"
	}
	return home.WriteJSON(s.dir.StartupFile(), times, 0o600)
}

// rootCause prefers what ended the whole start (a component that died, Ctrl-C) to what failed because of it.
func rootCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func inPhase(p phase) []component {
	var found []component
	for _, c := range components {
		if c.phase == p {
			found = append(found, c)
		}
	}
	return found
}

// A certified OpenID provider on loopback. In go a key and certificate (PEM files) and a redirect URI; out comes one line of JSON with
// the issuer, as soon as it listens. It ends with its standard input. People log in by any name and password.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { Provider } from 'oidc-provider';

const [keyFile, certificateFile, redirectURI] = process.argv.slice(2);
const server = createServer({ key: readFileSync(keyFile), cert: readFileSync(certificateFile) });
server.listen(0, '127.0.0.1', () => {
  const issuer = `https://127.0.0.1:${server.address().port}`;
  const key = (type, options, more) => ({ ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), use: 'sig', ...more });
  const client = (id, more) => ({
    client_id: id,
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    response_types: ['code'],
    redirect_uris: [redirectURI],
    ...more,
  });
  const provider = new Provider(issuer, {
    clients: [
      client('public', { token_endpoint_auth_method: 'none' }),
      client('confidential', { client_secret: 'only-for-tests', id_token_signed_response_alg: 'ES256' }),
    ],
    jwks: { keys: [key('rsa', { modulusLength: 2048 }, { kid: 'rsa', alg: 'RS256' }), key('ec', { namedCurve: 'P-256' }, { kid: 'ec', alg: 'ES256' })] },
    pkce: { required: () => true },
    features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
    cookies: { keys: ['only for tests'] },
    ttl: { IdToken: 300, AccessToken: 300, RefreshToken: 3600, DeviceCode: 600, Session: 3600, Grant: 3600, Interaction: 600 },
  });
  server.on('request', provider.callback());
  process.stdout.write(`${JSON.stringify({ issuer })}\n`);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));

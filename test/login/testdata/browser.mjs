// A person with a real browser. In go lines of JSON: {"address", "does": "agree" or "refuse", "code": that of a device, if there is
// one}; out comes one line for each, with address, text and complaints of the last page, or an error. Each has a browser without
// cookies. It ends with its standard input.
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const browser = await chromium.launch({ executablePath: process.argv[2], args: ['--no-sandbox'], timeout: 300000 });

async function visit({ address, does, code }) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  try {
    await context.route((url) => url.hostname !== '127.0.0.1', (route) => route.abort()); // fonts of the provider's pages
    const page = await context.newPage();
    page.setDefaultTimeout(300000);
    const complaints = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(address);
    if (code) {
      await page.fill('input[name=user_code]', code);
      await page.click('button:has-text("Continue")');
      await page.waitForSelector(`text=${code}`); // the person compares
      await page.click('button:has-text("Continue")');
    }
    await page.fill('input[name=login]', 'alice');
    await page.fill('input[name=password]', 'any');
    await page.click('button[type=submit]');
    await page.click(does === 'refuse' ? 'text=Cancel' : 'button:has-text("Continue")');
    complaints.length = 0; // those of the provider's own pages
    await page.waitForSelector(code ? 'text=Sign-in Success' : 'text=logged in');
    return { url: page.url(), text: await page.innerText('body'), complaints };
  } finally {
    await context.close();
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const shown = await visit(JSON.parse(line)).catch((error) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(shown)}\n`);
}
await browser.close();

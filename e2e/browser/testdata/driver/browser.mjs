// What all scenes share: a browser as people run it, and a stand that takes note
// of what Stile counted after each step.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

/** The parameters of this run, from the Go test. */
export const run = JSON.parse(process.env.STILE_E2E)

/** open starts Chromium with an empty profile and returns its context. */
export async function open(options = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'stile-e2e-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: run.chromium,
    headless: true,
    // Playwright turns the back/forward cache off; people have it.
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    viewport: { width: 1100, height: 750 },
    ...options,
  })
  context.setDefaultTimeout(15_000)
  return {
    context,
    page: context.pages()[0],
    async close() {
      await context.close()
      rmSync(profile, { recursive: true, force: true })
    },
  }
}

/** quiet waits until a page has sent nothing for a while. */
export async function quiet(context, least = 250, still = 300) {
  let last = Date.now()
  const note = () => { last = Date.now() }
  context.on('request', note)
  context.on('requestfinished', note)
  await new Promise((r) => setTimeout(r, least))
  while (Date.now() - last < still) await new Promise((r) => setTimeout(r, 50))
  context.off('request', note)
  context.off('requestfinished', note)
}

/** arrived waits until a page is there. One out of the back/forward cache fires
 * no load event that Playwright would see. */
export async function arrived(page, path) {
  for (let i = 0; i < 300; i++) {
    const now = await page.evaluate(() => [location.pathname, document.readyState]).catch(() => [])
    if (now[0] === path && now[1] === 'complete') return
    await page.waitForTimeout(50)
  }
  throw new Error(`never arrived at ${path}, but at ${page.url()}`)
}

/** step plays one step and hands its name and findings to the Go test. */
export async function step(context, name, play) {
  const sent = []
  const note = (r) => {
    const h = r.headers()
    sent.push({ url: r.url(), method: r.method(), type: r.resourceType(), rsc: h.rsc === '1', prefetch: h['next-router-prefetch'] !== undefined })
  }
  context.on('request', note)
  const found = (await play()) ?? {}
  await quiet(context)
  context.off('request', note)
  const res = await fetch(`${run.control}/step`, {
    method: 'POST',
    body: JSON.stringify({
      name,
      documents: sent.filter((r) => r.type === 'document').length,
      rsc: sent.filter((r) => r.rsc && !r.prefetch).length,
      prefetches: sent.filter((r) => r.rsc && r.prefetch).length,
      requests: sent.length,
      ...found,
    }),
  })
  if (!res.ok) throw new Error(`step ${name}: ${res.status}`)
}

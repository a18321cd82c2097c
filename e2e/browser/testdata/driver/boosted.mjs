// Pages that Turbo and htmx turn into soft navigations.
import { arrived, handled, open, quiet, run, step } from './browser.mjs'

const { context, page, close } = await open()
const heading = (text) => page.waitForFunction((t) => document.querySelector('h1')?.textContent === t, text)
const ahead = (path) => page.waitForResponse((r) => new URL(r.url()).pathname === path)

try {
  for (const kind of ['turbo', 'htmx', 'htmx4']) {
    const go = (name, play) => step(context, `${kind}: ${name}`, play)
    await go('a page', () => page.goto(`${run.site}/${kind}/0`))
    await go('ten soft clicks', async () => {
      for (let i = 1; i <= 10; i++) {
        if (kind !== 'turbo') await handled(page, `#soft-${i}`) // Turbo listens at the document
        await page.click(`#soft-${i}`)
        await heading(`View ${i}`)
      }
    })
    if (kind === 'turbo') {
      await go('three links under the mouse', async () => {
        for (const i of [1, 2, 3]) await Promise.all([ahead(`/${kind}/${i}`), page.hover(`#ahead-${i}`)])
      })
      await go('a click on a link fetched ahead', async () => {
        await Promise.all([ahead(`/${kind}/4`), page.hover('#ahead-4')])
        await quiet(context)
        await page.click('#ahead-4')
        await heading('View 4')
      })
    } else {
      await go('a part of a page', async () => {
        await handled(page, 'button')
        await page.click('button')
        await page.waitForSelector('#part')
      })
    }
    await go('a link that opts out', async () => {
      await page.click('#hard')
      await arrived(page, `/${kind}/0`)
      await heading('View 0')
    })
  }
} finally {
  await close()
}
